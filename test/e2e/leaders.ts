import type { Redis } from 'ioredis';
import { get } from 'node:http';
import { openApp, type App } from './shop.js';

/** A process of the demo of leaders: it leads, or stands by. */
export interface Instance extends App {
  readonly port: number;
  /** How many containers it has built and prepared. */
  readonly preloaded: number;
}

/** Resolves when it stands by. */
export async function openInstance(port: number, env: Record<string, string | number>): Promise<Instance> {
  const app = await openApp('scripts/demo/leader/main.js', { ...env, PORT: port }, /is standing by/);
  const preloaded = (): number => app.log().match(/is standing by/g)!.length;
  return Object.defineProperties(app, { port: { value: port }, preloaded: { get: preloaded } }) as Instance;
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
export async function readLedger(redis: Redis): Promise<Entry[]> {
  const entries = await redis.xrange('{ledger}:log', '-', '+');
  return entries.map(([, fields]) => {
    const of = (name: string): number => Number(fields[fields.indexOf(name) + 1]);
    return { token: of('token'), pid: of('pid'), accepted: of('accepted') === 1, at: of('at') };
  });
}
