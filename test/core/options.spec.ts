import { LockConfigError, LockLostError, Locks, type LocksOptions, type UsingOptions } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore, type RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { checkOptions } from '../../lib/core/model/check-options.js';
import { completeOptions, resolveOptions, USING_CHECKS } from '../../lib/core/model/options.js';

const notIntegers = [1.5, -1, NaN, Infinity, -Infinity, 2 ** 53, '500', null, true, {}, 5n];
const notPositive = [...notIntegers, 0];

const wrong: Record<keyof UsingOptions, unknown[]> = {
  keyTimeout: [...notPositive, 1, 9],
  retryCount: notIntegers,
  retryInterval: notPositive,
  waitTimeout: notIntegers.filter((value) => value !== Infinity),
  reentrant: ['yes', 0, 1, null],
  fair: ['yes', 0, 1, null],
  minHold: notIntegers,
  maxHold: notPositive,
  renew: ['yes', 0, 1, null],
  label: [5, null, {}],
  signal: [{}, null, new AbortController(), 'signal'],
  onTimeout: ['run', true, null, 0],
  onLost: ['warn', true, null, () => undefined],
};

const right: Record<keyof UsingOptions, unknown[]> = {
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
  signal: [new AbortController().signal, AbortSignal.timeout(60_000)],
  onTimeout: ['throw', 'skip', () => 'instead'],
  onLost: ['throw', 'ignore'],
};

const pairs = (table: Record<string, unknown[]>) =>
  Object.entries(table).flatMap(([name, values]) => values.map((value) => [name, value] as const));
const onlyOfUsing = ['onTimeout', 'onLost'];
const show = (value: unknown) => (typeof value === 'object' && value ? value.constructor.name : String(value));
const titled = (table: Record<string, unknown[]>) => pairs(table).map(([name, value]) => [name, show(value), value] as const);

/** What a call throws or rejects with, which must be a LockConfigError that names the option. */
async function expectConfigError(call: () => unknown, name: string): Promise<void> {
  const error: unknown = await (async () => call())().then(
    () => 'nothing',
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(LockConfigError);
  expect((error as Error).message).toContain(`"${name}"`);
}

describe('an option of a call', () => {
  const locks = new Locks(memoryStore());
  const body = jest.fn();
  afterEach(() => expect(body).not.toHaveBeenCalled());

  it.each(titled(wrong))('%s must not be %s', async (name, _shown, value) => {
    const options = { [name]: value };
    await expectConfigError(() => locks.acquire('key', options), name);
    await expectConfigError(() => locks.tryAcquire('key', options), name);
    await expectConfigError(() => locks.using('key', body, options), name);
    await expectConfigError(() => locks.mutex('key').using(body, options), name);
    await expectConfigError(() => new Locks(memoryStore(), { defaults: options }), name);
  });

  it.each(['keyTimeOut', 'ttl', 'store', 'toString', '__proto__x', 'constructor'])('must not be called %s', async (name) => {
    const options = { [name]: 1 };
    await expectConfigError(() => locks.acquire('key', options), name);
    await expectConfigError(() => locks.tryAcquire('key', options), name);
    await expectConfigError(() => locks.using('key', body, options), name);
    await expectConfigError(() => new Locks(memoryStore(), { defaults: options }), name);
  });

  it.each(onlyOfUsing)('%s is none of an acquire', async (name) => {
    const options = { [name]: 'throw' };
    await expectConfigError(() => locks.acquire('key', options), name);
    await expectConfigError(() => locks.tryAcquire('key', options), name);
  });

  it('signal is no default', () =>
    expectConfigError(() => new Locks(memoryStore(), { defaults: { signal: AbortSignal.timeout(1) } as UsingOptions }), 'signal'));

  it.each([null, 5, 'fair', true])('cannot come in %p', async (options) => {
    const given = options as unknown as UsingOptions;
    const message = /the options must be an object/;
    await expect(locks.acquire('key', given)).rejects.toThrow(message);
    await expect(locks.tryAcquire('key', given)).rejects.toThrow(message);
    await expect(locks.using('key', body, given)).rejects.toThrow(message);
    expect(() => new Locks(memoryStore(), { defaults: given })).toThrow(message);
  });

  it('is checked where it is inherited', async () => {
    const options = Object.create({ keyTimeout: 0 }) as UsingOptions;
    await expectConfigError(() => locks.acquire('key', options), 'keyTimeout');
    await expectConfigError(() => locks.using('key', body, options), 'keyTimeout');
  });

  it('names the lock that it belongs to', async () => {
    await expect(locks.acquire('order:42', { keyTimeout: 0 })).rejects.toThrow(/order:42.*"keyTimeout" must be.*at least 10, not 0/);
  });
});

describe('a right option', () => {
  it.each(titled(right))('%s may be %s', async (name, _shown, value) => {
    const locks = new Locks(memoryStore(), { logger: false });
    const options = { [name]: value };
    // The shortest lease may be over before its work has begun, on a busy machine.
    const ran = (work: Promise<string | undefined>) =>
      work.catch((error) => {
        if (!(error instanceof LockLostError)) throw error;
        return 'ran';
      });
    expect(await ran(locks.using('key', () => 'ran', options))).toBe('ran');
    if (!onlyOfUsing.includes(name)) await (await locks.acquire('key', options)).release();
    if (name === 'signal') return;
    const byDefault = new Locks(memoryStore(), { defaults: options, logger: false });
    expect(await ran(byDefault.using('key', () => 'ran'))).toBe('ran');
  });

  it.each([
    ['keyTimeout', 10],
    ['retryInterval', 1],
    ['maxHold', 1],
    ['retryCount', 0],
    ['minHold', 0],
    ['waitTimeout', 0],
  ])('%s may be as small as %d', (name, value) => {
    expect(() => checkOptions({ [name]: value }, 'here', USING_CHECKS)).not.toThrow();
  });

  it('counts as not given when it is undefined', async () => {
    const undefinedOptions = Object.fromEntries(Object.keys(right).map((name) => [name, undefined]));
    const { signal: _, ...defaults } = undefinedOptions;
    const locks = new Locks(memoryStore(), { defaults });
    expect(await locks.using('key', (lease) => lease.remaining() > 900, undefinedOptions)).toBe(true);
  });
});

describe('the options of a call', () => {
  const resolve = (defaults: UsingOptions, own?: UsingOptions) => resolveOptions(completeOptions(defaults), own);

  it('are the documented defaults where nobody says otherwise', () => {
    expect(resolve({})).toEqual({
      keyTimeout: 10_000,
      retryCount: 3,
      retryInterval: 500,
      renew: true,
      reentrant: true,
      fair: false,
      minHold: 0,
      onTimeout: 'throw',
      onLost: 'throw',
    });
  });

  it('are the caller’s before those of the Locks', () => {
    expect(resolve({ keyTimeout: 50, fair: true }, { keyTimeout: 70, maxHold: 1 })).toMatchObject({
      keyTimeout: 70,
      fair: true,
      maxHold: 1,
    });
    expect(resolve({ keyTimeout: 50 }, { keyTimeout: undefined })).toMatchObject({ keyTimeout: 50 });
  });

  it('let the caller’s retryCount beat a waitTimeout of the Locks, but not its own', () => {
    expect(resolve({ waitTimeout: 5 }, { retryCount: 1 }).waitTimeout).toBeUndefined();
    expect(resolve({ waitTimeout: 5 }, { retryCount: 1, waitTimeout: 7 }).waitTimeout).toBe(7);
    expect(resolve({ waitTimeout: 5 }, { retryInterval: 1 }).waitTimeout).toBe(5);
    expect(resolve({ retryCount: 1 }, { waitTimeout: 7 }).waitTimeout).toBe(7);
  });
});

describe('an option of Locks', () => {
  const wrongLocks: Record<string, unknown[]> = {
    namespace: [5, null, {}, ['a']],
    shutdownTimeout: notIntegers,
    logKeys: ['some', true],
    slowWait: [0, -1, 1.5, '5'],
    logger: [{}, { warn: () => undefined }, 'console', true, 5],
    nameSpace: ['shop:'],
    keyTimeout: [1_000],
  };

  it.each(titled(wrongLocks))('%s must not be %s', (name, _shown, value) =>
    expectConfigError(() => new Locks(memoryStore(), { [name]: value }), name),
  );

  it.each([null, 5, 'shop'])('cannot come in %p', (options) => {
    expect(() => new Locks(memoryStore(), options as unknown as LocksOptions)).toThrow(LockConfigError);
  });

  it.each([undefined, null, {}, 'redis://localhost', { mutex: {} }])('is not needed without a store, such as %p', (store) => {
    expect(() => new Locks(store as never)).toThrow(LockConfigError);
    expect(() => new Locks(store as never)).toThrow(/Locks need a store, such as redisStore/);
  });
});

describe('an option of redisStore', () => {
  const options = { path: '/nowhere' };
  const client = { status: 'ready', evalsha: () => undefined, on: () => undefined, off: () => undefined };

  it.each(
    titled({
      requestTimeout: [...notPositive, 2 ** 31],
      fenceTimeout: notPositive,
      timeout: [1_000],
      url: [5, null, {}],
      client: [{}, null, 'redis://localhost'],
    }),
  )('%s must not be %s', async (name, _shown, value) => {
    const source = ['url', 'client'].includes(name) ? {} : { options };
    await expectConfigError(() => redisStore({ ...source, [name]: value } as RedisStoreOptions), name);
  });

  it.each([
    ['nothing', {}],
    ['only a requestTimeout', { requestTimeout: 5 }],
    ['only undefined ones', { url: undefined }],
    ['two of them', { url: 'redis://localhost', options }],
    ['a client and a url', { url: 'redis://localhost', client }],
    ['sentinels without a name', { sentinels: [{ host: 'a', port: 1 }] }],
    ['no sentinel', { sentinels: [], name: 'main' }],
    ['a cluster without nodes', { cluster: [] }],
    ['no object', undefined],
    ['null', null],
    ['a text', 'redis://localhost'],
  ])('must say once where the server is, not %s', (_what, given) => {
    expect(() => redisStore(given as unknown as RedisStoreOptions)).toThrow(LockConfigError);
  });

  it.each([
    ['a url', { url: 'redis://localhost:1' }],
    ['options', { options }],
    ['a client', { client }],
    ['options and times', { options, requestTimeout: 1, fenceTimeout: 1 }],
    ['options and what is undefined', { options, url: undefined, requestTimeout: undefined }],
    ['sentinels', { sentinels: [{ host: 'a', port: 1 }], name: 'main' }],
    ['sentinels and options', { sentinels: [{ host: 'a', port: 1 }], name: 'main', options: { db: 1 } }],
  ])('may be %s, and nothing connects yet', async (_what, given) => {
    const store = redisStore(given as unknown as RedisStoreOptions);
    expect(store.name).toBe('redis');
    await store.close();
  });
});
