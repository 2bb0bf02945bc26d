import { inspect } from 'node:util';
import { DistributedLock, DistributedLockModule, LockConfigError, type DistributedLockModuleOptions } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { boot } from './boot.js';

/** As a caller without types sees it. */
const Lock = DistributedLock as unknown as (options: unknown) => MethodDecorator;

function define(options: unknown) {
  class Shop {
    @Lock(options)
    async buy(..._args: unknown[]) {
      throw new Error('ran');
    }
  }
  return Shop;
}

const notWhole = [-1, 0.5, NaN, -Infinity, '1', '', null, true, 1n, 2 ** 53, {}, [5], Symbol('five'), () => 5, Object.create(null)];
const notText = [5, null, false, {}, ['a'], Symbol('a'), () => 'a'];

const bad: Record<string, unknown[]> = {
  keyTimeout: [0, Infinity, ...notWhole],
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

describe('a wrong option', () => {
  it.each(cases)('%s: %s is refused when the class is defined', (name, _text, value) => {
    const error = refusalOf(() => define({ [name]: value }));
    expect(error).toMatch(/@DistributedLock\(\) on Shop\.buy/);
    expect(error).toContain(`"${name}"`);
  });

  it.each(cases)('%s: %s is refused as a default of the module', (name, _text, value) => {
    const error = refusalOf(() => DistributedLockModule.forRoot({ store: memoryStore(), defaults: { [name]: value } }));
    expect(error).toMatch(/DistributedLockModule.*"defaults"/);
    expect(error).toContain(`"${name}"`);
  });

  it.each(['ttl', 'keyTimeOut', 'permits', 'signal', '__proto__x', 'toString'])('named %s is unknown', (name) => {
    expect(refusalOf(() => define({ [name]: 1000 }))).toMatch(`Shop.buy: unknown option "${name}"`);
    expect(refusalOf(() => DistributedLockModule.forRoot({ store: memoryStore(), defaults: { [name]: 1000 } }))).toMatch(`"${name}"`);
  });

  it.each([[null], ['stock'], [5], [() => ({})]])('object %p is refused', (options) => {
    expect(refusalOf(() => define(options))).toMatch(/Shop\.buy: the options must be an object/);
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
    ['the least values', { keyTimeout: 3, retryCount: 0, retryInterval: 1, waitTimeout: 0, minHold: 0, maxHold: 1 }],
    ['the longest key', { value: 'x'.repeat(512 - '-locks'.length) }],
    ['a hash tag', { value: 'order:{42}' }],
  ])('is not %s', async (_what, options) => {
    await boot({ providers: [define(options)] });
  });
});

describe('a wrong key', () => {
  it('that is empty is refused when the class is defined', () => {
    expect(refusalOf(() => define({ prefix: '', value: '' }))).toMatch(/Shop\.buy: the key is empty/);
  });

  it.each<[string, object, Partial<DistributedLockModuleOptions>]>([
    ['that is empty without a prefix', { value: '' }, {}],
    ['that is empty with the defaults', { value: '' }, { defaults: { prefix: '' } }],
    ['that is too long', { value: 'x'.repeat(507) }, {}],
    ['that is too long with its prefix', { prefix: 'x'.repeat(256), value: 'x'.repeat(256) }, {}],
    ['that is too long with the namespace', { value: 'x'.repeat(500) }, { namespace: 'test:abc' }],
    ['with a new line', { value: 'a\nb' }, {}],
    ['with a NUL', { value: 'a\0' }, {}],
    ['with a DEL', { prefix: '\x7f' }, {}],
    ['with a C1 control character', { value: 'a\x85' }, {}],
    ['with half a surrogate pair', { value: 'a\ud800' }, {}],
    ['with an opening brace', { value: 'a{b' }, {}],
    ['with a closing brace', { value: 'a}b' }, {}],
    ['with braces the wrong way round', { value: '}a{' }, {}],
    ['with an empty tag', { value: '{}a' }, {}],
    ['with two tags', { value: '{a}{b}' }, {}],
    ['with nested tags', { value: '{{a}}' }, {}],
    ['with a second tag in the namespace', { value: '{a}' }, { namespace: '{eu}:' }],
  ])('%s is refused at boot', async (_what, options, moduleOptions) => {
    const booting = boot({ providers: [define(options)] }, moduleOptions);
    const error: unknown = await booting.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockConfigError);
    expect(error).toHaveProperty('message', expect.stringMatching(/@DistributedLock\(\) on Shop\.buy: .*\bkey\b/));
  });
});

function refusalOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(LockConfigError);
    return (error as LockConfigError).message;
  }
  throw new Error('was not refused');
}
