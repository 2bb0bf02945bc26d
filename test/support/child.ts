import { constants } from 'node:os';
import { resolve } from 'node:path';
import { eventually } from './eventually.js';
import { guardedFolder, startGuarded } from './guarded-process.js';

export interface ChildOptions {
  args?: string[];
  env?: NodeJS.ProcessEnv;
}

export interface ChildExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A message between a test and its child names its kind. */
export interface ChildMessage {
  type: string;
}

export interface Child<Message extends ChildMessage> {
  readonly pid: number;
  readonly running: boolean;
  /** resolves when it is gone */
  readonly exit: Promise<ChildExit>;
  /** Takes the oldest message of this type that no one has taken. Throws with the output of the child if it ends without one. */
  waitFor<T extends Message['type']>(type: T, options?: { within?: number }): Promise<Extract<Message, { type: T }>>;
  send(message: object): void;
  /** SIGKILL by default; resolves when it is gone */
  kill(signal?: NodeJS.Signals): Promise<ChildExit>;
  /** SIGSTOP: it does nothing, not even renew */
  pause(): void;
  /** SIGCONT */
  resume(): void;
  /** what it wrote to stdout and stderr */
  output(): string;
}

/**
 * Runs a TypeScript script as a process of its own, which ends with this one at the latest, even when it is paused or hangs.
 * The script talks with `tellParent` and `process.on('message')`.
 * @param script path from the project's root
 */
export async function forkChild<Message extends ChildMessage = ChildMessage>(
  script: string,
  { args = [], env }: ChildOptions = {},
): Promise<Child<Message>> {
  const messages: Message[] = [];
  const child = await startGuarded({
    command: process.execPath,
    args: ['--import', 'tsx', resolve(script), ...args],
    folder: guardedFolder('child'),
    env,
    onMessage: (message) => messages.push(message as Message),
  });
  let output: string | undefined;
  const exit = child.exited.then(async (status) => {
    output = child.log();
    await child.end();
    return exitOf(status);
  });
  exit.catch(() => undefined);

  function take<T extends Message['type']>(type: T) {
    const index = messages.findIndex((message) => message.type === type);
    if (index >= 0) return messages.splice(index, 1)[0] as Extract<Message, { type: T }>;
    if (child.running) throw new Error(`no message '${type}' from ${script}:\n${child.log()}`);
    return undefined; // no use to wait any longer
  }

  return {
    pid: child.pid,
    exit,
    get running() {
      return child.running;
    },
    async waitFor(type, options) {
      const message = await eventually(() => take(type), options);
      if (!message) throw new Error(`${script} ended (${JSON.stringify(await exit)}) before it said '${type}':\n${output}`);
      return message;
    },
    send: (message) => child.send(message),
    async kill(signal = 'SIGKILL') {
      if (signal === 'SIGKILL') await child.kill();
      else child.signal(signal);
      return exit;
    },
    pause: () => child.signal('SIGSTOP'),
    resume: () => child.signal('SIGCONT'),
    output: () => output ?? child.log(),
  };
}

/** For the script: sends a message to the test that forked it. */
export function tellParent(message: object): void {
  process.send?.(message);
}

/** The shell's status tells a signal as 128 + its number. */
function exitOf(status: number): ChildExit {
  const signal = Object.entries(constants.signals).find(([, number]) => number === status - 128)?.[0];
  return signal ? { code: null, signal: signal as NodeJS.Signals } : { code: status, signal: null };
}
