import type { Redis } from 'ioredis';
import { get } from 'node:http';
import { eventually } from '../support/eventually.js';
import { guardedFolder, startGuarded } from '../support/guarded-process.js';

/** A process of the built leader sample: it leads, or stands by. */
export interface Instance {
  readonly pid: number;
  readonly port: number;
  readonly running: boolean;
  /** Resolves with the shell's exit status (128 + n after signal n) when it is gone. */
  readonly exited: Promise<number>;
  /** How many containers it has built and prepared. */
  readonly preloaded: number;
  signal(signal: NodeJS.Signals): void;
  /** SIGKILL, also to one that is stopped; resolves when it is gone. */
  kill(): Promise<void>;
  log(): string;
}

/** Starts the sample; it cannot outlive this process. Resolves when it stands by. */
export async function openInstance(port: number, env: Record<string, string | number>): Promise<Instance> {
  let preloaded = 0;
  const guarded = await startGuarded({
    command: process.execPath,
    args: ['sample-app/dist/leader/main.js'],
    folder: guardedFolder('leader'),
    env: { NODE_ENV: 'production', ...asText({ ...env, PORT: port }) },
    onMessage: (message) => void ((message as { type: string }).type === 'standing by' && preloaded++),
  });
  let log: string | undefined;
  const exited = guarded.exited.then(async (status) => {
    log = guarded.log();
    await guarded.end();
    return status;
  });
  exited.catch(() => undefined);
  const instance: Instance = {
    pid: guarded.pid,
    port,
    exited,
    get running() {
      return guarded.running;
    },
    get preloaded() {
      return preloaded;
    },
    signal: (signal) => guarded.signal(signal),
    async kill() {
      await guarded.kill();
      await exited;
    },
    log: () => log ?? guarded.log(),
  };
  await eventually(() => preloaded > 0 || !guarded.running, { within: 20_000 });
  if (preloaded === 0) throw new Error(`An instance ended before it stood by (status ${await exited}):\n${log}`);
  return instance;
}

export interface Answer {
  pid: number;
  token: number;
}

/** Who answers at this port, over a connection of its own; nothing if nobody does. */
export function who(port: number, timeout = 1_000): Promise<Answer | undefined> {
  return new Promise((resolve) => {
    const request = get({ host: '127.0.0.1', port, path: '/who', agent: false, timeout }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (data: string) => (body += data));
      response.on('end', () => resolve(response.statusCode === 200 ? (JSON.parse(body) as Answer) : undefined));
      response.on('error', () => resolve(undefined));
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(undefined));
    request.on('close', () => resolve(undefined)); // whatever became of it
  });
}

/** A line of the ledger: what somebody tried to write, and whether it was accepted. */
export interface Entry {
  token: number;
  pid: number;
  accepted: boolean;
  /** By the clock of the server, in microseconds. */
  at: number;
}

/** The whole log of the fenced resource, the oldest first. */
export async function readLedger(redis: Redis, namespace = ''): Promise<Entry[]> {
  const entries = await redis.xrange(`${namespace}{ledger}:log`, '-', '+');
  return entries.map(([, fields]) => {
    const of = (name: string): number => Number(fields[fields.indexOf(name) + 1]);
    return { token: of('token'), pid: of('pid'), accepted: of('accepted') === 1, at: of('at') };
  });
}

function asText(env: Record<string, string | number>): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)]));
}
