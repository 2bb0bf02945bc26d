import '../support/virtual-time.js';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { applyDecorators } from '@nestjs/common';
import { buildSync, type BuildOptions } from 'esbuild';
import type { DistributedLockOptions, LockStore } from 'nestjs-distributed-lock';
import { DistributedLock, DistributedLockModule, ReadLock, Semaphore, WriteLock } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { boot } from './boot.js';
import { classOf } from './class-of.js';
import { KINDS } from './kinds.js';
import { Log } from './log.js';
import { expectRefused } from './refusal.js';

type Options = DistributedLockOptions & { policy?: 'readers' | 'writers' | 'fair' };
type Decorate = (options: Options) => MethodDecorator;
const [lock, read, write] = [DistributedLock as Decorate, ReadLock as Decorate, WriteLock as Decorate];
const semaphore = (options: object) => Semaphore({ permits: 3, ...options }) as MethodDecorator;
const sku = (of: unknown) => String(of);
const STOCK = { value: 'stock' };
const stock = (options: Options) => lock({ ...STOCK, ...options });

const shopWith = (one: MethodDecorator, two: MethodDecorator) => classOf('Shop', { one, two });

const otherStore = (store = memoryStore(), namespace = '') =>
  DistributedLockModule.forRoot({ name: 'other', store, namespace, logger: false });

describe('one key as two kinds of lock', () => {
  it.each<[string, MethodDecorator, MethodDecorator, RegExp]>([
    [
      'a mutex and a semaphore',
      lock(STOCK),
      semaphore(STOCK),
      /"stock-locks" would be a semaphore, but is a mutex by @DistributedLock\(\) on/,
    ],
    ['a mutex and a write lock', write(STOCK), lock(STOCK), /@DistributedLock\(\) on Shop\.two: .*@WriteLock\(\)/],
    ['a semaphore and a read lock', semaphore(STOCK), read(STOCK), /@ReadLock\(\) on Shop\.two: .*@Semaphore\(\)/],
    ['prefix and value, cut elsewhere', lock({ prefix: 'sto', value: 'ck' }), read({ prefix: 'st', value: 'ock' }), /"stock-locks"/],
    ['parts by a key function', stock({ key: sku }), read({ ...STOCK, key: sku }), /"stock-…-locks"/],
    ['parts by paramLock', stock({ paramLock: true }), read({ ...STOCK, paramLock: true }), /"stock-…-locks"/],
    ['parts by paths', stock({ paramLock: ['0'] }), semaphore({ ...STOCK, paramLock: ['0'] }), /"stock-…-locks"/],
  ])('is refused at boot: %s', async (_what, first, second, message) => {
    await expectRefused(boot({ providers: [shopWith(first, second)] }, { namespace: '' }), message);
  });

  it('is refused for two locks of one method that have the default key', async () => {
    const Shop = classOf('Shop', { buy: applyDecorators(lock({}), semaphore({})) });
    await expect(boot({ providers: [Shop] })).rejects.toThrow(/the key "Shop\.buy-locks" would be/);
  });

  it('is refused in two classes, and with the namespace in the message', async () => {
    const providers = [classOf('First', { one: write(STOCK) }), classOf('Second', { two: semaphore(STOCK) })];
    const booting = boot({ providers }, { namespace: 'eu:' });
    await expect(booting).rejects.toThrow(/on Second\.two: the key "eu:stock-locks".*@WriteLock\(\) on First\.one/);
  });

  it.each<[string, MethodDecorator, MethodDecorator]>([
    ['read and write', read(STOCK), write(STOCK)],
    ['different keys', lock(STOCK), read({ value: 'price' })],
    ['the default keys', lock({}), semaphore({})],
    ['with and without parts', lock(STOCK), read({ ...STOCK, key: sku })],
    ['parts of different sorts', stock({ paramLock: true }), read({ ...STOCK, key: sku })],
    ['different stores', lock(STOCK), read({ ...STOCK, store: 'other' })],
  ])('is not: %s', async (_what, first, second) => {
    await boot({ imports: [otherStore()], providers: [shopWith(first, second)] });
  });

  it('is refused in two modules of one store with one namespace, and not with two', async () => {
    const store = memoryStore();
    const Shop = shopWith(lock(STOCK), read({ ...STOCK, store: 'other' }));
    await boot({ imports: [otherStore(store, 'other:')], providers: [Shop] }, { store });
    await expect(boot({ imports: [otherStore(store)], providers: [Shop] }, { store })).rejects.toThrow(/the key "stock-locks"/);
  });
});

it.each(KINDS.slice(1))('a store without its kind of lock is refused at boot by $name, which names the method', async (kind) => {
  const { mutex } = memoryStore();
  const supports: LockStore['supports'] = (feature) => feature === 'mutex';
  const store: LockStore = { name: 'plain', requestTimeout: 100, mutex, supports, close: async () => undefined };
  await expect(boot({ providers: [classOf('Shop', { buy: kind.lock() })] }, { store })).rejects.toMatchObject({
    name: 'UnsupportedPrimitiveError',
    message: expect.stringContaining(`${kind.name}() on Shop.buy: The plain store has no `),
  });
});

/** What an app with two methods, locked so, warns about at its start. */
async function warningsOf(first: MethodDecorator, second: MethodDecorator, defaults?: Options): Promise<string[]> {
  const logger = new Log();
  await boot({ providers: [shopWith(first, second)] }, { logger, defaults });
  return logger.warnings;
}

describe('methods that share a prefix and a value', () => {
  it.each<[string, MethodDecorator, MethodDecorator, RegExp]>([
    ['key and paramLock', stock({ key: sku }), stock({ paramLock: true }), /"paramLock" of all arguments here, but by a "key" function by/],
    [
      'key and nothing',
      stock({ key: sku }),
      stock({}),
      /without its arguments here, but by a "key" function by @DistributedLock\(\) on Shop\.one/,
    ],
    ['paths and all arguments', stock({ paramLock: ['0'] }), stock({ paramLock: true }), /the two do not exclude each other/],
    ['fair and not', stock({ fair: true, key: sku }), stock({ key: sku }), /"stock-…-locks" has fair false here, but true by/],
    [
      'two policies',
      read({ ...STOCK, policy: 'readers' }),
      write(STOCK),
      /"stock-locks" has policy fair here, but readers by @ReadLock\(\) on Shop\.one/,
    ],
    [
      'two numbers of permits',
      semaphore(STOCK),
      semaphore({ ...STOCK, permits: 4 }),
      /@Semaphore\(\) on Shop\.two: "stock-locks" has permits 4 here, but 3 by @Semaphore\(\) on Shop\.one/,
    ],
  ])('are warned about once: %s', async (_what, first, second, message) => {
    expect(await warningsOf(first, second)).toEqual([expect.stringMatching(message)]);
  });

  it.each([
    ['the same key function', stock({ key: sku }), stock({ key: (of) => `${String(of)}` })],
    ['different times', stock({ keyTimeout: 100, waitTimeout: 5 }), stock({ keyTimeout: 200 })],
    ['another value', lock({ value: 'stocks', fair: true }), stock({ key: sku })],
    ['several of the same permits', semaphore(STOCK), semaphore({ ...STOCK, count: 2 })],
    ['other permits of another key', semaphore(STOCK), semaphore({ permits: 4, value: 'plate' })],
  ])('are not warned about with %s', async (_what, first, second) => {
    expect(await warningsOf(first, second)).toEqual([]);
  });

  it('count the defaults of the module as their own options', async () => {
    expect(await warningsOf(stock({ fair: true }), stock({}), { fair: true })).toEqual([]);
  });
});

it.each<[string, BuildOptions, RegExp]>([
  ['two keys in a bundle', {}, /^Job\.run-locks Job2\.run-locks$/],
  ['one key where the bundler keeps names', { keepNames: true }, /^Job\.run-locks Job\.run-locks$/],
])('two classes of one name, whose locks have no value, have %s', async (_what, options, keys) => {
  const folder = mkdtempSync(join(tmpdir(), 'bundle-'));
  const job = "import { DistributedLock } from 'nestjs-distributed-lock'; export class Job { @DistributedLock() async run() {} }";
  for (const file of ['one.ts', 'two.ts']) writeFileSync(join(folder, file), job);
  const contents = "import * as one from './one'; import * as two from './two'; export const jobs = [one.Job, two.Job];";
  const { outputFiles } = buildSync({
    stdin: { contents, loader: 'ts', resolveDir: folder },
    ...{ bundle: true, write: false, format: 'cjs', platform: 'node', external: ['nestjs-distributed-lock'] },
    tsconfigRaw: { compilerOptions: { experimentalDecorators: true } },
    ...options,
  });
  rmSync(folder, { recursive: true });
  const module = { exports: {} as { jobs: (new () => { run(): Promise<void> })[] } };
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- it is the bundle of the sources above
  new Function('module', 'require', outputFiles![0]!.text)(module, () => ({ DistributedLock }));
  const { acquired, get } = await boot({ providers: module.exports.jobs });
  for (const each of module.exports.jobs) await get(each).run();
  expect(acquired.join(' ')).toMatch(keys);
});
