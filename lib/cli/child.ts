import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import type { Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';

/** Waits for a word before it becomes the command, so that no command runs without its guardian. */
const GATE = 'read -r word <&3 && [ "$word" = go ] && exec 3<&- && exec "$@"; exit 125';
/** Ends the group `$1` when the pipe from us ends, which it does however we end: SIGTERM, and after `$2` seconds SIGKILL. dash knows no `kill -TERM --`. */
const GUARDIAN = `
trap '' HUP INT TERM QUIT
echo ready
read -r word
[ "$word" = done ] && exit 0
over=
trap 'over=yes' USR1
kill -s TERM -- "-$1" 2>/dev/null
{ sleep "$2"; kill -s USR1 $$ 2>/dev/null; } &
while [ -z "$over" ] && kill -s 0 -- "-$1" 2>/dev/null; do sleep 0.1; done
kill -s KILL -- "-$1" 2>/dev/null
`;
/** Milliseconds between two looks whether the processes of the group have ended. */
const LOOK_INTERVAL = 20;
/** Milliseconds for which they are waited for after a SIGKILL. */
const AFTER_KILL = 1000;

/** A command in a process group of its own, which does not outlive this process, not even a `kill -9` of it. */
export class GuardedChild {
  /** Settles when no process of the group is left: the exit code of the command, 128 + n after a signal. */
  readonly exited: Promise<number>;
  private isOver = false;
  /** Whether a signal was sent to it. */
  private isSignalled = false;
  private killer: NodeJS.Timeout | undefined;
  private killedAt = Infinity;

  private constructor(
    private readonly child: ChildProcess,
    guardian: ChildProcess,
    private readonly grace: number,
  ) {
    this.exited = once(child, 'exit').then(async ([code, signal]: (number | null | NodeJS.Signals)[]) => {
      await this.endRest();
      this.isOver = true;
      clearTimeout(this.killer);
      if (guardian.exitCode === null && guardian.signalCode === null) {
        (guardian.stdin as Writable).end('done\n');
        await once(guardian, 'exit');
      }
      return typeof code === 'number' ? code : 128 + constants.signals[signal as NodeJS.Signals];
    });
  }

  /**
   * @param command is not read by a shell.
   * @param grace milliseconds between SIGTERM and SIGKILL.
   */
  static async start(command: readonly string[], env: NodeJS.ProcessEnv, grace: number): Promise<GuardedChild> {
    const child = spawn('sh', ['-c', GATE, 'sh', ...command], { detached: true, stdio: ['inherit', 'inherit', 'inherit', 'pipe'], env });
    const gate = child.stdio[3] as Writable;
    gate.on('error', () => undefined);
    await once(child, 'spawn');
    const ids = [String(child.pid), (grace / 1000).toFixed(3)];
    const guardian = spawn('sh', ['-c', GUARDIAN, 'sh', ...ids], { detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
    guardian.stdin.on('error', () => undefined);
    const guarded = new GuardedChild(child, guardian, grace);
    await new Promise<void>((resolve, reject) => {
      guardian.stdout.once('data', () => resolve());
      for (const event of ['error', 'exit'])
        guardian.once(event, () => reject(new Error('The guardian of the command could not be started.')));
    }).catch((error: unknown) => {
      gate.end();
      throw error;
    });
    gate.end('go\n');
    return guarded;
  }

  /** To the command and all that it has started in its group. */
  signal(signal: NodeJS.Signals): void {
    if (this.isOver || this.child.pid === undefined) return;
    this.isSignalled = true;
    try {
      process.kill(-this.child.pid, signal);
    } catch {
      // All of them have ended.
    }
  }

  /** SIGTERM, and SIGKILL after the grace. */
  end(): void {
    if (this.killer) return;
    this.signal('SIGTERM');
    this.killLater();
  }

  private killLater(): void {
    this.killer = setTimeout(() => {
      this.killedAt = performance.now();
      this.signal('SIGKILL');
    }, this.grace);
  }

  /** Ends the processes that the command leaves in its group: they would go on without the lock. */
  private async endRest(): Promise<void> {
    const group = this.child.pid as number;
    if (!isGroupAlive(group)) return;
    if (!this.isSignalled) this.end();
    else if (!this.killer) this.killLater();
    while (isGroupAlive(group) && performance.now() < this.killedAt + AFTER_KILL) await pause(LOOK_INTERVAL);
  }
}

/** Whether a process of the group runs. */
function isGroupAlive(group: number): boolean {
  try {
    process.kill(-group, 0);
  } catch (error) {
    return (error as { code?: unknown }).code === 'EPERM';
  }
  return !areZombies(group);
}

/** Processes that have ended stay in their group until their parent asks how, which the first process of a container may never do. */
function areZombies(group: number): boolean {
  let ids: string[];
  try {
    ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return false;
  }
  const states = ids.map(stateOf).filter((each) => each?.group === group);
  return states.length > 0 && states.every((each) => each?.state === 'Z' || each?.state === 'X');
}

function stateOf(id: string): { readonly state: string; readonly group: number } | undefined {
  try {
    // `id (name) state parent group …`, where a name may have any characters.
    const text = readFileSync(`/proc/${id}/stat`, 'latin1');
    const [state = '', , group] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { state, group: Number(group) };
  } catch {
    return undefined;
  }
}
