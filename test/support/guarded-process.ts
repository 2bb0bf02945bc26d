import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export interface GuardedOptions {
  command: string;
  args: string[];
  /** made by `guardedFolder`: holds the log, and goes when the guard goes */
  folder: string;
  env?: NodeJS.ProcessEnv;
  /** name of the Docker container that `command` runs, if it runs one */
  container?: string;
  /** the user and group that it runs as, and its guard with it; default: ours */
  user?: { uid: number; gid: number };
  /** its children die with it when the test process goes: a server of several processes, which may be stopped. Not for what guards others */
  withChildren?: boolean;
  /** called with each message of the process; opens an IPC channel to it */
  onMessage?: (message: unknown) => void;
}

export interface GuardedProcess {
  readonly pid: number;
  readonly running: boolean;
  /** resolves with the shell's exit status (128 + n after signal n) when the process is gone */
  readonly exited: Promise<number>;
  /** everything it wrote to stdout and stderr */
  log(): string;
  send(message: object): void;
  signal(signal: NodeJS.Signals): void;
  /** SIGKILL, which also ends a stopped process; resolves when it is gone */
  kill(): Promise<void>;
  /** `kill`, and the guard goes too, with the folder unless it is kept */
  end(options?: { keepFolder?: boolean }): Promise<void>;
}

// The end of stdin means that the test process is gone, however it went: then this kills the command, which may be stopped, and
// removes its folder. The shell is the parent, so until the `wait` the pid can belong to nobody else.
// $1 the folder, $2 the Docker container or nothing, $3 `children` if those are to be killed too, then the command. Writes `pid N`, and `exit N` once the command has ended.
const guard = `
folder=$1 container=$2 family=$3
shift 3
trap '' HUP INT TERM PIPE
exec 9<&0 </dev/null
"$@" >>"$folder/log" 2>&1 9<&- &
pid=$!
exec 3>&- # the IPC channel is the command's alone
echo "pid $pid"
{
  read -r word <&9
  if [ -n "$container" ]; then
    docker rm -f "$container" >/dev/null
  else
    children=
    if [ "$family" = children ]; then
      kill -STOP "$pid" # no more of them
      children=$(ps -A -o pid= -o ppid= | awk -v parent="$pid" '$2 == parent { print $1 }')
    fi
    kill -KILL $children "$pid" # the last one, because the end of the command ends this reader
  fi
} &
reader=$!
wait "$pid"
status=$?
kill -KILL "$reader"
wait "$reader"
echo "exit $status"
read -r word <&9
[ "$word" = keep ] || rm -rf "$folder"
`;

export function guardedFolder(name: string): string {
  return mkdtempSync(join(tmpdir(), `${name}-`));
}

/** Starts a process that cannot outlive this one. */
export async function startGuarded(options: GuardedOptions): Promise<GuardedProcess> {
  const { command, args, folder, container = '', env, user, withChildren = false, onMessage } = options;
  const shell = spawn('sh', ['-c', guard, 'guard', folder, container, withChildren ? 'children' : '', command, ...args], {
    ...user,
    cwd: user ? folder : undefined, // it may not be let into ours
    env: { ...process.env, ...env },
    detached: true, // Ctrl-C and kills of our process group must not reach the guard
    stdio: ['pipe', 'pipe', 'ignore', onMessage ? 'ipc' : 'ignore'],
  });
  const stdin = shell.stdin as Socket;
  const stdout = shell.stdout as Socket;
  stdin.on('error', () => undefined); // the guard went first
  if (onMessage) shell.on('message', onMessage);

  let running = true;
  let tellPid: (pid: number) => void;
  const pidTold = new Promise<number>((resolve) => (tellPid = resolve));
  const exited = new Promise<number>((resolve, reject) => {
    createInterface(stdout).on('line', (line) => {
      const [what, value] = line.split(' ');
      if (what === 'pid') tellPid(Number(value));
      if (what === 'exit') resolve(Number(value));
    });
    shell.once('error', reject);
    shell.once('close', () => reject(new Error('The guard of a test process was killed')));
  });
  exited.finally(() => (running = false)).catch(() => undefined);
  const guardGone = new Promise<void>((resolve) => shell.once('close', () => resolve()));
  const pid = await Promise.race([pidTold, exited]);

  // A process that a test forgot must not keep the runner alive: it ends with the runner.
  const handles = [shell, stdin, stdout];
  handles.forEach((handle) => handle.unref());
  const hold = () => handles.forEach((handle) => handle.ref());

  function sendSignal(signal: NodeJS.Signals) {
    if (!running) return;
    try {
      process.kill(pid, signal);
    } catch (error) {
      // It ended by itself, and its exit was not read yet.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }

  async function kill() {
    hold();
    if (running && container) spawn('docker', ['rm', '-f', container], { stdio: 'ignore' });
    else sendSignal('SIGKILL');
    await exited;
  }

  return {
    pid,
    exited,
    get running() {
      return running;
    },
    log: () => readFileSync(join(folder, 'log'), { encoding: 'utf8', flag: 'a+' }),
    send: (message) => void shell.send(message),
    signal: sendSignal,
    kill,
    async end({ keepFolder = false } = {}) {
      await kill();
      stdin.end(keepFolder ? 'keep\n' : '');
      await guardGone;
    },
  };
}
