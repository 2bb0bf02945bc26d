import { inspect } from 'node:util';
import {
  DistributedLock,
  DistributedLockModule,
  LeaderOnly,
  LockConfigError,
  ReadLock,
  Semaphore,
  WriteLock,
  type DistributedLockModuleOptions,
} from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { boot } from './boot.js';
import { refusalOf } from './refusal.js';

type Untyped = (...args: unknown[]) => MethodDecorator;
const Permit = Semaphore as unknown as Untyped;
/** As a caller without types sees them. */
const DECORATORS: Record<string, Untyped> = {
  DistributedLock: DistributedLock as unknown as Untyped,
  ReadLock: ReadLock as unknown as Untyped,
  WriteLock: WriteLock as unknown as Untyped,
  Semaphore: (options) => Permit(typeof options === 'object' && options !== null ? { permits: 5, ...options } : options),
};
const NAMES = Object.keys(DECORATORS);

function define(options: unknown, name = 'DistributedLock') {
  return defineBy(DECORATORS[name]!(options));
}

function defineBy(decorator: MethodDecorator) {
  class Shop {
    @decorator
    async buy(..._args: unknown[]) {
      throw new Error('ran');
    }
  }
  return Shop;
}

const notWhole = [-1, 0.5, NaN, -Infinity, '1', '', null, true, 1n, 2 ** 53, {}, [5], Symbol('five'), () => 5, Object.create(null)];
const notText = [5, null, false, {}, ['a'], Symbol('a'), () => 'a'];

const bad: Record<string, unknown[]> = {
  keyTimeout: [0, 1, 9, Infinity, ...notWhole],
  retryCount: [Infinity, ...notWhole],
  retryInterval: [0, Infinity, ...notWhole],
  waitTimeout: notWhole,
  minHold: [Infinity, ...notWhole],
  maxHold: [0, Infinity, ...notWhole],
  reentrant: ['true', 1, null, {}],
  fair: ['yes', 0, null, []],
  onTimeout: ['ignore', 'Throw', '', null, true, 5, {}],
  onLost: ['skip', '', null, false, () => 'a'],
  prefix: notText,
  value: notText,
  store: notText,
  key: ['sku', '', 5, null, {}, ['0']],
  paramLock: ['true', '0', 1, null, {}, [], [0], [''], ['a'], ['0.'], ['0..id'], ['00'], ['-1'], [' 0'], ['0', null]],
  returns: ['stream', 'Promise', '', 5, null, true],
};
const cases = Object.entries(bad).flatMap(([name, values]) => values.map((value) => [name, inspect(value), value] as const));
const badBesides: [string, string, unknown[]][] = [
  ['ReadLock', 'policy', ['', 'reader', null, true, 1, {}, Object.create(null), Symbol('fair')]],
  ['WriteLock', 'policy', ['', 'writer', null, true, 1, {}, Object.create(null), Symbol('fair')]],
  ['Semaphore', 'permits', [0, Infinity, undefined, 1_000_001, ...notWhole]],
  ['Semaphore', 'count', [0, 6, Infinity, ...notWhole]],
];
const casesBesides = badBesides.flatMap(([by, name, values]) => values.map((value) => [by, name, inspect(value), value] as const));

describe.each(NAMES)('a wrong option of @%s', (decorator) => {
  it.each(cases)('%s: %s is refused when the class is defined', (name, _text, value) => {
    const error = refusalOf(() => define({ [name]: value }, decorator));
    expect(error).toContain(`@${decorator}() on Shop.buy: `);
    expect(error).toContain(`"${name}"`);
  });

  it.each(['ttl', 'keyTimeOut', 'signal', 'election', '__proto__x', 'toString'])('named %s is unknown', (name) => {
    expect(refusalOf(() => define({ [name]: 1000 }, decorator))).toMatch(`@${decorator}() on Shop.buy: unknown option "${name}"`);
  });

  it.each([[null], ['stock'], [5], [() => ({})]])('object %p is refused', (options) => {
    expect(refusalOf(() => define(options, decorator))).toMatch(/Shop\.buy: the options must be an object/);
  });

  it('is an empty key', () => {
    expect(refusalOf(() => define({ prefix: '', value: '' }, decorator))).toContain(`@${decorator}() on Shop.buy: the key is empty`);
  });
});

describe('a wrong option of one decorator', () => {
  it.each(casesBesides)('@%s: %s: %s is refused when the class is defined', (decorator, name, _text, value) => {
    const error = refusalOf(() => define({ [name]: value }, decorator));
    expect(error).toContain(`@${decorator}() on Shop.buy: "${name}" must be `);
  });

  it.each([
    ['DistributedLock', 'policy', 'fair'],
    ['Semaphore', 'policy', 'fair'],
    ['DistributedLock', 'permits', 5],
    ['ReadLock', 'permits', 5],
    ['WriteLock', 'count', 1],
  ])('is one of another: @%s has no %s', (decorator, name, value) => {
    expect(refusalOf(() => define({ [name]: value }, decorator))).toMatch(`@${decorator}() on Shop.buy: unknown option "${name}"`);
  });

  it('is no default of the module', () => {
    for (const [name, value] of Object.entries({ permits: 5, count: 1, policy: 'fair', election: 'a' })) {
      const options = { store: memoryStore(), defaults: { [name]: value } };
      expect(refusalOf(() => DistributedLockModule.forRoot(options))).toMatch(
        `DistributedLockModule: "defaults": unknown option "${name}"`,
      );
    }
  });

  it('is a semaphore without permits', () => {
    expect(refusalOf(() => defineBy(Permit()))).toMatch(/@Semaphore\(\) on Shop\.buy: "permits" must be a whole number/);
  });

  const Lead = LeaderOnly as unknown as Untyped;
  it.each([[undefined], [''], [null], [5], [{}], [() => 'jobs']])('is an election named %p', (name) => {
    expect(refusalOf(() => defineBy(Lead(name)))).toMatch(/@LeaderOnly\(\) on Shop\.buy: the name of the election must be a string/);
  });

  const leaderCases = cases.filter(([name]) => ['keyTimeout', 'retryInterval', 'onLost', 'returns', 'store'].includes(name));
  it.each(leaderCases)('of @LeaderOnly: %s: %s is refused when the class is defined', (name, _text, value) => {
    const error = refusalOf(() => defineBy(Lead('jobs', { [name]: value })));
    expect(error).toContain('@LeaderOnly() on Shop.buy: ');
    expect(error).toContain(`"${name}"`);
  });

  const noneOfTheLeader = 'prefix value key paramLock onTimeout waitTimeout retryCount minHold maxHold fair reentrant ttl'.split(' ');
  it.each(noneOfTheLeader)('of @LeaderOnly is named %s', (name) => {
    expect(refusalOf(() => defineBy(Lead('jobs', { [name]: 1 })))).toMatch(`@LeaderOnly() on Shop.buy: unknown option "${name}"`);
  });

  it.each([[null], ['stock'], [5]])('of @LeaderOnly is no object: %p', (options) => {
    expect(refusalOf(() => defineBy(Lead('jobs', options)))).toMatch(/Shop\.buy: the options must be an object/);
  });
});

describe('a wrong option', () => {
  it.each(cases)('%s: %s is refused as a default of the module', (name, _text, value) => {
    const error = refusalOf(() => DistributedLockModule.forRoot({ store: memoryStore(), defaults: { [name]: value } }));
    expect(error).toMatch(/DistributedLockModule.*"defaults"/);
    expect(error).toContain(`"${name}"`);
  });

  it.each(['ttl', 'keyTimeOut', 'signal', '__proto__x', 'toString'])('named %s is unknown as a default', (name) => {
    expect(refusalOf(() => DistributedLockModule.forRoot({ store: memoryStore(), defaults: { [name]: 1000 } }))).toMatch(`"${name}"`);
  });

  it.each([[true], [['0']]])('is a key together with paramLock: %p', (paramLock) => {
    const error = refusalOf(() => define({ key: () => 'a', paramLock }));
    expect(error).toMatch(/Shop\.buy: .*"key".*"paramLock"/);
    expect(() => define({ key: () => 'a', paramLock: false })).not.toThrow();
  });

  it('is a waitTimeout of -Infinity, but not of Infinity', () => {
    expect(() => define({ waitTimeout: Infinity })).not.toThrow();
  });

  it.each([
    ['nothing', {}],
    ['undefined everywhere', Object.fromEntries(Object.keys(bad).map((name) => [name, undefined]))],
    ['the least values', { keyTimeout: 10, retryCount: 0, retryInterval: 1, waitTimeout: 0, minHold: 0, maxHold: 1 }],
    ['the longest key', { value: 'x'.repeat(512 - '-locks'.length) }],
    ['a hash tag', { value: 'order:{42}' }],
  ])('is not %s', async (_what, options) => {
    await boot({ providers: [define(options)] });
  });
});

describe('a wrong key', () => {
  it.each<[string, object, Partial<DistributedLockModuleOptions>]>([
    ['that is empty without a prefix', { value: '' }, {}],
    ['that is empty with the defaults', { value: '' }, { defaults: { prefix: '' } }],
    ['that is too long', { value: 'x'.repeat(507) }, {}],
    ['that is too long with its prefix', { prefix: 'x'.repeat(256), value: 'x'.repeat(256) }, {}],
    ['that is too long with the namespace', { value: 'x'.repeat(500) }, { namespace: 'test:abc' }],
    ['with a control character', { prefix: '\x7f' }, {}],
    ['with a control character before parts', { value: 'a\n', paramLock: true }, {}],
    ['with a stray brace before parts', { prefix: 'a{', value: 'b', key: () => 5 }, {}],
    ['with a stray brace', { value: 'a}b' }, {}],
    ['with a second tag in the namespace', { value: '{a}' }, { namespace: '{eu}:' }],
  ])('%s is refused at boot', async (_what, options, moduleOptions) => {
    const booting = boot({ providers: [define(options)] }, moduleOptions);
    const error: unknown = await booting.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockConfigError);
    expect(error).toHaveProperty('message', expect.stringMatching(/@DistributedLock\(\) on Shop\.buy: .*\bkey\b/));
  });
});
