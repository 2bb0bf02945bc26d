import '../support/virtual-time.js';
import { LockConfigError, Locks, type LocksOptions, type UsingOptions } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore, type RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { completeOptions, resolveOptions } from '../../lib/core/model/options.js';
import { UNKNOWN_NAMES, WRONG_OPTIONS, wrongNumbers } from './wrong-options.js';

/** What a call throws or rejects with must be a LockConfigError that names the option. */
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

  /** It is refused wherever options are taken. */
  async function expectRefusal(name: string, value: unknown, onlyOfUsing = false): Promise<void> {
    const options = { [name]: value };
    const acquiring = [() => locks.acquire('key', options), () => locks.tryAcquire('key', options)];
    const using = [() => locks.using('key', body, options), () => locks.mutex('key').using(body, options)];
    const defaults = () => new Locks(memoryStore(), { defaults: options });
    for (const call of onlyOfUsing ? acquiring : [...acquiring, ...using, defaults]) await expectConfigError(call, name);
  }

  const signals = [{}, null, new AbortController(), 'signal'];
  it.each(Object.entries({ ...WRONG_OPTIONS, signal: signals }))('%s must have a value of its kind', async (name, values) => {
    await expectRefusal(name, values[0]);
    for (const value of values) await expectConfigError(() => locks.using('key', body, { [name]: value }), name);
  });

  it.each([...UNKNOWN_NAMES, 'store', 'constructor'])('must not be called %s', (name) => expectRefusal(name, 1));

  it.each(['onTimeout', 'onLost'])('%s is none of an acquire', (name) => expectRefusal(name, 'throw', true));

  it('signal is no default', () =>
    expectConfigError(() => new Locks(memoryStore(), { defaults: { signal: new AbortController().signal } as UsingOptions }), 'signal'));

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

  it.each([null, 5, 'fair', true])('cannot come in %p', async (options) => {
    const given = options as unknown as UsingOptions;
    const message = /the options must be an object/;
    await expect(locks.acquire('key', given)).rejects.toThrow(message);
    await expect(locks.using('key', body, given)).rejects.toThrow(message);
    expect(() => new Locks(memoryStore(), { defaults: given })).toThrow(message);
  });

  it('is checked where it is inherited', () =>
    expectConfigError(() => locks.using('key', body, Object.create({ keyTimeout: 0 }) as UsingOptions), 'keyTimeout'));

  it.each([
    [{}, { minHold: 5000, maxHold: 4999 }],
    [{ maxHold: 4999 }, { minHold: 5000 }],
  ])('must not be a minHold that is longer than maxHold: %j and %j', async (defaults, options) => {
    const mutex = new Locks(memoryStore(), { defaults }).mutex('key');
    const message = '"minHold" (5000 ms) must not be longer than "maxHold" (4999 ms)';
    for (const call of [mutex.acquire(options), mutex.tryAcquire(options), mutex.using(body, options)])
      await expect(call).rejects.toThrow(message);
  });

  it('must not be such a minHold in the defaults, which are refused at once', () => {
    const defaults = { minHold: 5000, maxHold: 4999 };
    expect(() => new Locks(memoryStore(), { defaults })).toThrow('Locks: "defaults": "minHold" (5000 ms) must not be longer');
  });

  it('is refused with the name of the lock and what it must be', async () => {
    await expect(locks.acquire('order:42', { keyTimeout: 0 })).rejects.toThrow(/order:42.*"keyTimeout" must be.*at least 10, not 0/);
  });
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

  it('are the documented defaults where nobody says otherwise', () => {
    expect(resolve({})).toEqual({
      ...{ keyTimeout: 10_000, retryCount: 3, retryInterval: 500, renew: true, reentrant: true, fair: false, minHold: 0 },
      ...{ onTimeout: 'throw', onLost: 'throw' },
    });
  });

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

describe('an option of Locks', () => {
  const wrong = {
    namespace: [5, null, {}, ['a']],
    shutdownTimeout: wrongNumbers(Infinity),
    logKeys: ['some', true],
    slowWait: [0, -1, 1.5, '5'],
    logger: [{}, { warn: () => undefined }, 'console', true, 5],
    nameSpace: ['shop:'],
    keyTimeout: [1_000],
  };
  it.each(Object.entries(wrong))('%s is refused with a wrong value, or because it is none', async (name, values) => {
    for (const value of values) await expectConfigError(() => new Locks(memoryStore(), { [name]: value }), name);
  });

  it.each([null, 5, 'shop'])('cannot come in %p', (options) => {
    expect(() => new Locks(memoryStore(), options as unknown as LocksOptions)).toThrow(LockConfigError);
  });

  it.each([undefined, null, {}, 'redis://localhost', { mutex: {} }])('does not stand for a store, such as %p', (store) => {
    expect(() => new Locks(store as never)).toThrow(LockConfigError);
    expect(() => new Locks(store as never)).toThrow(/Locks need a store, such as redisStore/);
  });
});

describe('an option of redisStore', () => {
  const options = { path: '/nowhere' };
  const client = { status: 'ready', evalsha: () => undefined, on: () => undefined, off: () => undefined };
  const sentinels = [{ host: 'a', port: 1 }];

  const wrong = {
    requestTimeout: [0, -1, 1.5, NaN, Infinity, 2 ** 31, '500', null, true, 5n, {}],
    fenceTimeout: [0, -1, 1.5, NaN, Infinity, 2 ** 53, '500', null, true],
    timeout: [1_000],
    url: [5, null, {}],
    client: [{}, null, 'redis://localhost'],
  };
  it.each(Object.entries(wrong))('%s is refused with a wrong value, or because it is none', async (name, values) => {
    const source = ['url', 'client'].includes(name) ? {} : { options };
    for (const value of values) await expectConfigError(() => redisStore({ ...source, [name]: value } as RedisStoreOptions), name);
  });

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
    ['null', null],
    ['a text', 'redis://localhost'],
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
    const store = redisStore(given as unknown as RedisStoreOptions);
    expect(store.name).toBe('redis');
    await store.close();
  });
});
