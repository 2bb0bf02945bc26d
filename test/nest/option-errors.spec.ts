import '../support/virtual-time.js';
import {
  CronLock,
  DistributedLock,
  DistributedLockModule,
  LeaderOnly,
  LockConfigError,
  Locks,
  ReadLock,
  runStandby,
  Semaphore,
  WriteLock,
  type DistributedLockModuleOptions,
  type StandbyOptions,
} from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { UNKNOWN_NAMES, WRONG_OPTIONS, wrongNumbers } from '../core/wrong-options.js';
import { boot } from './boot.js';
import { refusalOf } from './refusal.js';

type Untyped = (options?: unknown) => MethodDecorator;
const Lead = LeaderOnly as unknown as (...args: unknown[]) => MethodDecorator;
const whole = (required: object, options: unknown) => (typeof options === 'object' && options ? { ...required, ...options } : options);
/** As a caller without types sees them, with the options that each needs. */
const DECORATORS: Record<string, Untyped> = {
  DistributedLock: DistributedLock as Untyped,
  ReadLock: ReadLock as Untyped,
  WriteLock: WriteLock as Untyped,
  Semaphore: (options) => (Semaphore as Untyped)(whole({ permits: 5 }, options)),
  CronLock: (options) => (CronLock as Untyped)(whole({ minHold: 5 }, options)),
  LeaderOnly: (options) => Lead('jobs', options),
};
/** They share their options; the others have some of them. */
const LOCKS = ['DistributedLock', 'ReadLock', 'WriteLock', 'Semaphore'];

function define(decorator: MethodDecorator) {
  class Shop {
    @decorator
    async buy(..._args: unknown[]) {
      throw new Error('ran');
    }
  }
  return Shop;
}
const refusal = (options: unknown, name = 'DistributedLock') => refusalOf(() => define(DECORATORS[name]!(options)));
const refusalOfDefaults = (defaults: unknown) =>
  refusalOf(() => DistributedLockModule.forRoot({ store: memoryStore(), defaults } as DistributedLockModuleOptions));

const NOT_TEXT = [5, null, false, {}, ['a'], Symbol('a'), () => 'a'];
const WRONG: Record<string, unknown[]> = {
  ...WRONG_OPTIONS,
  prefix: NOT_TEXT,
  value: NOT_TEXT,
  store: NOT_TEXT,
  key: ['sku', '', 5, null, {}, ['0']],
  paramLock: ['true', '0', 1, null, {}, [], [0], [''], ['a'], ['0.'], ['0..id'], ['00'], ['-1'], [' 0'], ['0', null]],
  returns: ['stream', 'Promise', '', 5, null, true],
};

describe('a decorator refuses, when the class is defined,', () => {
  it.each(Object.entries(WRONG))('a wrong value of %s, as does forRoot among its defaults', (name, values) => {
    for (const value of values) {
      const error = refusal({ [name]: value });
      expect(error).toContain(`@DistributedLock() on Shop.buy: "${name}" must be `);
      expect(refusalOfDefaults({ [name]: value })).toContain(`DistributedLockModule: "defaults": ${error.slice(error.indexOf('"'))}`);
    }
    for (const other of LOCKS.slice(1))
      expect(refusal({ [name]: values[0] }, other)).toContain(`@${other}() on Shop.buy: "${name}" must be `);
  });

  it.each<[string, string, unknown[]]>([
    ['ReadLock', 'policy', ['', 'reader', null, true, 1, {}, Object.create(null), Symbol('fair')]],
    ['WriteLock', 'policy', ['writer']],
    ['Semaphore', 'permits', wrongNumbers(0, Infinity, undefined, 1_000_001)],
    ['Semaphore', 'count', wrongNumbers(0, 6, Infinity)],
    ['CronLock', 'minHold', wrongNumbers(0, Infinity, undefined)],
    ...['keyTimeout', 'retryInterval', 'onLost', 'returns', 'store'].map((name): [string, string, unknown[]] => [
      'LeaderOnly',
      name,
      WRONG[name]!,
    ]),
  ])('a wrong value of an option of its own: @%s, %s', (decorator, name, values) => {
    for (const value of values) expect(refusal({ [name]: value }, decorator)).toContain(`@${decorator}() on Shop.buy: "${name}" must be `);
  });

  it('a call without the options that it needs, and shows one with them', () => {
    expect(refusalOf(() => define((Semaphore as Untyped)()))).toMatch(/, not undefined: write @Semaphore\(\{ permits: 5 \}\)\./);
    expect(refusalOf(() => define((CronLock as Untyped)()))).toMatch(/, not undefined: write @CronLock\(\{ minHold: 60_000 \}\)\./);
    expect(refusalOf(() => define(Lead(undefined)))).toMatch(/not empty: write @LeaderOnly\('jobs'\)\./);
    expect(refusalOf(() => define((Semaphore as Untyped)()))).toMatch(/@Semaphore\(\) on Shop\.buy: "permits" must be a whole number/);
    for (const options of [undefined, {}]) {
      expect(refusalOf(() => define((CronLock as Untyped)(options)))).toMatch(
        /@CronLock\(\) on Shop\.buy: "minHold" must be .* at least 1/,
      );
    }
    for (const name of [undefined, '', null, 5, {}, () => 'jobs']) {
      expect(refusalOf(() => define(Lead(name)))).toMatch(/@LeaderOnly\(\) on Shop\.buy: the name of the election must be a string/);
    }
  });

  it.each(Object.keys(DECORATORS))('an unknown option of @%s, and options that are no object', (name) => {
    for (const unknown of ['signal', ...UNKNOWN_NAMES]) {
      expect(refusal({ [unknown]: 1000 }, name)).toContain(`@${name}() on Shop.buy: unknown option "${unknown}"`);
    }
    for (const options of [null, 'stock', 5, () => ({})])
      expect(refusal(options, name)).toMatch(/Shop\.buy: the options must be an object/);
  });

  it.each([
    ['DistributedLock', 'policy permits count election'],
    ['ReadLock', 'permits count'],
    ['WriteLock', 'permits count'],
    ['Semaphore', 'policy'],
    ['CronLock', 'waitTimeout retryCount retryInterval onTimeout policy permits'],
    ['LeaderOnly', 'prefix value key paramLock onTimeout waitTimeout retryCount minHold maxHold fair reentrant renew permits policy'],
  ])('an option that @%s does not have: %s', (decorator, names) => {
    for (const name of names.split(' ')) {
      expect(refusal({ [name]: 1 }, decorator)).toContain(`@${decorator}() on Shop.buy: unknown option "${name}"`);
    }
  });

  it('a minHold that is longer than maxHold', () => {
    const message = '"minHold" (60000 ms) must not be longer than "maxHold" (59999 ms)';
    for (const name of LOCKS) expect(refusal({ minHold: 60_000, maxHold: 59_999 }, name)).toContain(`@${name}() on Shop.buy: ${message}`);
    expect(refusalOfDefaults({ minHold: 60_000, maxHold: 59_999 })).toContain(message);
  });

  it('an empty key, and a key together with paramLock', () => {
    for (const name of LOCKS) expect(refusal({ prefix: '', value: '' }, name)).toContain(`@${name}() on Shop.buy: the key is empty`);
    for (const paramLock of [true, ['0']]) expect(refusal({ key: () => 'a', paramLock })).toMatch(/Shop\.buy: .*"key".*"paramLock"/);
  });
});

it('forRoot knows no default that is an option of another decorator, or of none', () => {
  for (const name of [...UNKNOWN_NAMES, 'signal', 'permits', 'count', 'policy', 'election'])
    expect(refusalOfDefaults({ [name]: 1000 })).toContain(`DistributedLockModule: "defaults": unknown option "${name}"`);
});

describe('the error of an unknown option', () => {
  it('suggests the nearest one, of a decorator, the module and Locks; or none', () => {
    const meant = { ttl: 'keyTimeout', leaseTime: 'keyTimeout', keytimeot: 'keyTimeout', timeout: 'waitTimeout', retries: 'retryCount' };
    for (const [name, nearest] of Object.entries({ ...meant, retryDelay: 'retryInterval', paramlock: 'paramLock' }))
      expect(refusal({ [name]: 5 })).toBe(
        `@DistributedLock() on Shop.buy: unknown option "${name}". Did you mean "${nearest}"? [LOCK_CONFIG_UNKNOWN_OPTION]`,
      );
    expect(refusal({ colour: 5 })).toBe('@DistributedLock() on Shop.buy: unknown option "colour". [LOCK_CONFIG_UNKNOWN_OPTION]');
    const store = memoryStore();
    expect(refusalOf(() => DistributedLockModule.forRoot({ store, nameSpace: 'a' } as never))).toContain('Did you mean "namespace"?');
    expect(refusalOf(() => new Locks(store, { shutdownTimout: 5 } as never))).toContain('Did you mean "shutdownTimeout"?');
  });

  it.each<[string, unknown, string]>([
    ['host', { host: 'localhost', port: 6379 }, '"host" is an option of ioredis: write redisStore({ options: { host } })'],
    ['a client passed bare', { evalsha: () => undefined }, 'a client is passed as redisStore({ client })'],
    ['a URL passed bare', 'redis://localhost', 'the options must be an object: redisStore({ url })'],
    ['an empty url', { url: '' }, '"url" must be a URL such as redis://localhost:6379, not \'\''],
    ['a URL of another server', { url: 'postgres://localhost' }, '"url" must begin with redis:// or rediss://, not postgres://'],
    ['a database that is no number', { url: 'redis://localhost/abc' }, '"url" names the database \'abc\': it must be a number'],
    ['a misspelled option', { uri: 'redis://localhost' }, 'unknown option "uri". Did you mean "url"?'],
  ])('says what to write in redisStore instead of %s', (_what, options, message) => {
    expect(refusalOf(() => redisStore(options as never))).toContain(message);
  });
});

describe('an app boots', () => {
  it.each([
    ['no option', {}],
    ['options that are undefined', Object.fromEntries(Object.keys(WRONG).map((name) => [name, undefined]))],
    ['the least values', { keyTimeout: 10, retryCount: 0, retryInterval: 1, waitTimeout: 0, minHold: 0, maxHold: 1 }],
    ['an endless waitTimeout', { waitTimeout: Infinity }],
    ['the longest key', { value: 'x'.repeat(512 - '-locks'.length) }],
    ['a hash tag', { value: 'order:{42}' }],
    ['a key and no paramLock', { key: () => 'a', paramLock: false }],
  ])('with %s', async (_what, options) => {
    await boot({ providers: [define((DistributedLock as Untyped)(options))] });
  });

  it.each<[string, object, Partial<DistributedLockModuleOptions>]>([
    ['is empty without a prefix', { value: '' }, {}],
    ['is empty with the defaults', { value: '' }, { defaults: { prefix: '' } }],
    ['is too long', { value: 'x'.repeat(507) }, {}],
    ['is too long with its prefix', { prefix: 'x'.repeat(256), value: 'x'.repeat(256) }, {}],
    ['is too long with the namespace', { value: 'x'.repeat(500) }, { namespace: 'test:abc' }],
    ['has a control character', { prefix: '\x7f' }, {}],
    ['has a control character before parts', { value: 'a\n', paramLock: true }, {}],
    ['has a stray brace before parts', { prefix: 'a{', value: 'b', key: () => 5 }, {}],
    ['has a stray brace', { value: 'a}b' }, {}],
    ['has a second hash tag in the namespace', { value: '{a}' }, { namespace: '{eu}:' }],
  ])('not with a key that %s', async (_what, options, moduleOptions) => {
    const booting = boot({ providers: [define((DistributedLock as Untyped)(options))] }, moduleOptions);
    const error: unknown = await booting.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockConfigError);
    expect(error).toHaveProperty('message', expect.stringMatching(/@DistributedLock\(\) on Shop\.buy: .*\bkey\b/));
  });
});

it('an app does not boot with a minHold that is longer than the maxHold of its defaults', async () => {
  const booting = boot({ providers: [define((DistributedLock as Untyped)({ minHold: 60_000 }))] }, { defaults: { maxHold: 10_000 } });
  await expect(booting).rejects.toThrow(/@DistributedLock\(\) on Shop\.buy: "minHold" \(60000 ms\) must not be longer than "maxHold"/);
});

describe('runStandby refuses wrong options', () => {
  const right = { locks: new Locks(memoryStore()), name: 'app', create: () => undefined, start: () => undefined };
  it.each<[string, Record<string, unknown> | undefined]>([
    ['options', undefined],
    ['"locks"', { ...right, locks: undefined }],
    ['name', { ...right, name: undefined }],
    ['"create"', { ...right, create: undefined }],
    ['"start"', { ...right, start: 3000 }],
    ['"shutdownTimeout"', { ...right, shutdownTimeout: -1 }],
    ['"keyTimeout"', { ...right, keyTimeout: 9 }],
    ['"port"', { ...right, port: 3000 }],
  ])('naming %s', (named, options) => {
    expect(refusalOf(() => runStandby(options as unknown as StandbyOptions))).toContain(named);
  });
});
