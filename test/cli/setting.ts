import { readFileSync } from 'node:fs';
import { forkChild, type Child } from '../support/child.js';
import { problemsOf, type Schema } from '../support/json-schema.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import type { HolderMessage, HolderRequest } from './holder.child.js';

const schema = JSON.parse(readFileSync('schema/cli.json', 'utf8')) as Schema;

/** A document of the command line, which its schema describes. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- its schema says what it is
export function documentIn<T = Record<string, any>>(text: string, name: string): T {
  const value = JSON.parse(text) as T;
  expect(problemsOf(value, { $ref: `#/$defs/${name}` }, schema)).toEqual([]);
  expect(problemsOf(value, schema)).toEqual([]);
  return value;
}

export function errorIn(text: string): { code: string; message: string } {
  return documentIn<{ error: { code: string; message: string } }>(text, 'error').error;
}

export type Holder = Omit<Child<HolderMessage>, 'send'> & { send(request: HolderRequest): void };

export async function startHolder(kind: 'redis' | 'postgres' | 'mysql', options: object): Promise<Holder> {
  const child = await forkChild<HolderMessage>('test/cli/holder.child.ts', { args: [kind, JSON.stringify(options)] });
  await child.waitFor('ready', { within: 30_000 });
  return child;
}

/** A private Redis with a password, for the tests of a file. */
export function useRedis(): { readonly server: RedisServer; readonly url: string } {
  let server: RedisServer;
  beforeAll(async () => void (server = await startRedis({ port: 'free', password: 'geheim' })));
  afterAll(() => server.stop());
  return {
    get server() {
      return server;
    },
    get url() {
      return `redis://:geheim@127.0.0.1:${server.port}`;
    },
  };
}
