import { Locks } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { isReady, pinoLogger } from './health-without-terminus.js';

it('a program without Nest knows whether its locks work, and logs fields', async () => {
  const lines: [unknown, string][] = [];
  const write = (fields: unknown, message: string) => void lines.push([fields, message]);
  const store = memoryStore();
  const locks = new Locks(store, { logger: pinoLogger({ warn: write, error: write, info: write, debug: write }) });
  expect(await isReady(locks)).toBe(true);
  const { owner, fencingToken: token } = await locks.acquire('key', { keyTimeout: 300 });
  await store.mutex.release({ key: 'key', owner, keepFor: 0 });
  await eventually(() => lines.length > 0);
  expect(lines).toEqual([[{ key: 'key', label: undefined, owner, token }, expect.stringMatching(/^Lost "key" after/)]]);
  await locks.close();
});
