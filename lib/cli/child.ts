import { spawn, type ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import type { Writable } from 'node:stream';

/** Waits for a word before it becomes the command, so that no command runs without its guardian. */
const GATE = 'read -r word <&3 && [ "$word" = go ] && exec 3<&- && exec "$@"; exit 125';
/** Ends the group of the command when the pipe from us ends, which it does however we end. */
const GUARDIAN = `
trap '' HUP INT TERM QUIT
echo ready
read -r word
[ "$word" = done ] && exit 0
kill -TERM -- "-$1"
left=$2
while [ "$left" -gt 0 ] && kill -0 -- "-$1" 2>/dev/null; do sleep 0.1; left=$((left - 1)); done
kill -KILL -- "-$1" 2>/dev/null
`;

/** A command in a process group of its own, which does not outlive this process, not even a `kill -9` of it. */
export class GuardedChild {
  /** The exit code, 128 + n after a signal. */
  readonly exited: Promise<number>;
  private isOver = false;

  private constructor(
    private readonly child: ChildProcess,
    guardian: ChildProcess,
  ) {
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.isOver = true;
        (guardian.stdin as Writable).end('done\n');
        resolve(code ?? 128 + (signal ? constants.signals[signal] : 0));
      });
    });
  }

  /**
   * @param command is not read by a shell.
   * @param grace milliseconds between SIGTERM and SIGKILL when this process has ended.
   */
  static async start(command: readonly string[], env: NodeJS.ProcessEnv, grace: number): Promise<GuardedChild> {
    const child = spawn('sh', ['-c', GATE, 'sh', ...command], { detached: true, stdio: ['inherit', 'inherit', 'inherit', 'pipe'], env });
    const gate = child.stdio[3] as Writable;
    gate.on('error', () => undefined);
    const tenths = String(Math.ceil(grace / 100));
    const guardian = spawn('sh', ['-c', GUARDIAN, 'sh', String(child.pid), tenths], { detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
    guardian.stdin.on('error', () => undefined);
    const guarded = new GuardedChild(child, guardian);
    await new Promise<void>((resolve, reject) => {
      guardian.stdout.once('data', () => resolve());
      for (const each of [child, guardian]) each.once('error', reject);
    });
    gate.end('go\n');
    return guarded;
  }

  /** To the command and all that it has started in its group. */
  signal(signal: NodeJS.Signals): void {
    if (this.isOver || this.child.pid === undefined) return;
    try {
      process.kill(-this.child.pid, signal);
    } catch {
      // It has ended by itself.
    }
  }
}
