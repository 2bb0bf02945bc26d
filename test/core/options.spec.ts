import '../support/virtual-time.js';
import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { LockConfigError, Locks, type UsingOptions } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore, type RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { completeOptions, resolveOptions } from '../../lib/core/model/options.js';

describe('a call', () => {
  const locks = new Locks(memoryStore());
  const body = jest.fn();
  it.each<[string, (...args: unknown[]) => Promise<unknown>, unknown[]]>([
    ['no work', locks.using.bind(locks) as never, ['key']],
    ['the options before the work', locks.using.bind(locks) as never, ['key', { keyTimeout: 500 }, body]],
    ['no work of a lock', locks.mutex('key').using.bind(locks.mutex('key')) as never, []],
    ['the options before the work of a multi-lock', (...args) => locks.multiLock(['a', 'b']).using(...(args as [never])), [{}, body]],
  ])('is told from the work: %s', async (_what, using, args) => {
    const error = await using(...args).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockConfigError);
    expect((error as Error).message).toMatch(/^Lock ".*": the work must be a function, and comes before the options: using\(/);
    expect(await locks.tryAcquire('key').then((lease) => lease?.release())).toBe(true);
  });

  it('tells that several keys are taken by multiLock', async () => {
    for (const call of [locks.acquire(['a', 'b'] as never), locks.tryAcquire(['a', 'b'] as never), locks.using(['a'] as never, body)])
      await expect(call).rejects.toThrow("A lock's key must be a string: several keys are taken by multiLock([…]).");
  });
});

it('the docstring of each option has its default', () => {
  const source = readFileSync('lib/core/model/options.ts', 'utf8');
  const told = [...source.matchAll(/Default `?([^`.]+)`?\.\s+\*\/\s+(\w+)\?:/g)].map(([, text, name]) => [name, text]);
  const defaults = Object.entries(completeOptions({})).map(([name, value]) => [
    name,
    typeof value === 'string' ? `'${value}'` : value.toLocaleString('en'),
  ]);
  expect(Object.fromEntries(told)).toEqual(Object.fromEntries(defaults));
});

describe('a right option', () => {
  const right = {
    keyTimeout: [10, 500, Number.MAX_SAFE_INTEGER],
    retryCount: [0, 1, 10],
    retryInterval: [1, 60_000],
    waitTimeout: [0, 1, 2 ** 40, Infinity],
    reentrant: [true, false],
    fair: [true, false],
    minHold: [0, 1],
    maxHold: [1, 2 ** 40],
    renew: [true, false],
    label: ['', 'Stock.buy'],
    onTimeout: ['throw', 'skip', () => 'instead'],
    onLost: ['throw', 'ignore'],
    signal: [new AbortController().signal],
  } satisfies Record<keyof UsingOptions, unknown[]>;

  it.each(Object.entries(right))('%s may have each value of its kind', async (name, values) => {
    for (const value of values) {
      const options: UsingOptions = { [name]: value };
      const locks = new Locks(memoryStore(), { defaults: name === 'signal' ? {} : options, logger: false });
      expect(await locks.using('by default', () => 'ran')).toBe('ran');
      expect(await locks.using('key', () => 'ran', options)).toBe('ran');
      if (!name.startsWith('on')) await (await locks.acquire('key', options)).release();
    }
  });

  it('counts as not given when it is undefined', async () => {
    const { signal, ...defaults } = Object.fromEntries(Object.keys(right).map((name) => [name, undefined]));
    const locks = new Locks(memoryStore(), { defaults });
    expect(await locks.using('key', (lease) => lease.remaining(), { ...defaults, signal })).toBeGreaterThan(9_000);
  });
});

describe('the options of a call', () => {
  const resolve = (defaults: UsingOptions, own?: UsingOptions) => resolveOptions(completeOptions(defaults), own);

  it('are those of the caller, else those of the Locks', () => {
    const own = { keyTimeout: 70, maxHold: 1 };
    expect(resolve({ keyTimeout: 50, fair: true }, own)).toMatchObject({ keyTimeout: 70, fair: true, maxHold: 1 });
    expect(resolve({ keyTimeout: 50 }, { keyTimeout: undefined })).toMatchObject({ keyTimeout: 50 });
  });

  it('let the retryCount of a caller beat a waitTimeout of the Locks, but not its own', () => {
    expect(resolve({ waitTimeout: 5 }, { retryCount: 1 }).waitTimeout).toBeUndefined();
    expect(resolve({ waitTimeout: 5 }, { retryCount: 1, waitTimeout: 7 }).waitTimeout).toBe(7);
    expect(resolve({ waitTimeout: 5 }, { retryInterval: 1 }).waitTimeout).toBe(5);
    expect(resolve({ retryCount: 1 }, { waitTimeout: 7 }).waitTimeout).toBe(7);
  });
});

it.each([undefined, null, {}, 'redis://localhost', { mutex: {} }])('a store is not %p', (store) => {
  expect(() => new Locks(store as never)).toThrow(LockConfigError);
  expect(() => new Locks(store as never)).toThrow(/Locks need a store, such as redisStore/);
});

describe('an option of redisStore', () => {
  const options = { path: '/nowhere' };
  const client = new Redis({ lazyConnect: true });
  const sentinels = [{ host: 'a', port: 1 }];

  it.each([
    ['nothing', {}],
    ['only a requestTimeout', { requestTimeout: 5 }],
    ['only undefined ones', { url: undefined }],
    ['two of them', { url: 'redis://localhost', options }],
    ['a client and a url', { url: 'redis://localhost', client }],
    ['sentinels without a name', { sentinels }],
    ['no sentinel', { sentinels: [], name: 'main' }],
    ['a cluster without nodes', { cluster: [] }],
    ['no object', undefined],
  ])('must say once where the server is, not %s', (_what, given) => {
    expect(() => redisStore(given as unknown as RedisStoreOptions)).toThrow(LockConfigError);
  });

  it.each([
    ['a url', { url: 'redis://localhost:1' }],
    ['a client', { client }],
    ['options and times', { options, requestTimeout: 1, fenceTimeout: 1 }],
    ['options and what is undefined', { options, url: undefined, requestTimeout: undefined }],
    ['sentinels', { sentinels, name: 'main' }],
    ['sentinels and options', { sentinels, name: 'main', options: { db: 1 } }],
  ])('may be %s, and nothing connects yet', async (_what, given) => {
    const store = redisStore(given);
    expect(store.name).toBe('redis');
    await store.close();
  });
});
