import { build } from 'esbuild';
import { DistributedLock, ReadLock, Semaphore, WriteLock, type DistributedLockOptions } from 'nestjs-distributed-lock';
import { boot } from './boot.js';
import { Log } from './log.js';
import { shopWith } from './shop-with.js';

type Options = DistributedLockOptions & { policy?: 'readers' | 'writers' | 'fair' };
const lock = DistributedLock as (options: Options) => MethodDecorator;
const read = ReadLock as (options: Options) => MethodDecorator;
const write = WriteLock as (options: Options) => MethodDecorator;
const semaphore = (options: object) => Semaphore({ permits: 3, value: 'press', ...options }) as MethodDecorator;
const sku = (of: unknown) => String(of);

/** What an app warns about at its start. */
async function warningsOf(provider: new () => unknown, defaults?: DistributedLockOptions): Promise<string[]> {
  const logger = new Log();
  await boot({ providers: [provider] }, { logger, defaults });
  return logger.warnings;
}

describe('methods that share a prefix and a value', () => {
  it.each<[string, Options, Options, RegExp]>([
    [
      'key and paramLock',
      { key: sku },
      { paramLock: true },
      /is completed by "paramLock" of all arguments here, but by a "key" function by/,
    ],
    [
      'key and nothing',
      { key: sku },
      {},
      /is completed without its arguments here, but by a "key" function by @DistributedLock\(\) on Shop\.one/,
    ],
    ['paths and all arguments', { paramLock: ['0'] }, { paramLock: true }, /the two do not exclude each other/],
    ['fair and not', { fair: true, key: sku }, { key: sku }, /"stock-…-locks" has fair false here, but true by/],
  ])('are warned about once: %s', async (_what, first, second, message) => {
    const shop = shopWith(lock({ value: 'stock', ...first }), lock({ value: 'stock', ...second }));
    expect(await warningsOf(shop)).toEqual([expect.stringMatching(message)]);
  });

  it.each([
    [
      'readers and writers differ in policy',
      shopWith(read({ value: 'stock', policy: 'readers' }), write({ value: 'stock' })),
      /"stock-locks" has policy fair here, but readers by @ReadLock\(\) on Shop\.one/,
    ],
    [
      'semaphores differ in the number of permits',
      shopWith(semaphore({}), semaphore({ permits: 4 })),
      /@Semaphore\(\) on Shop\.two: "press-locks" has permits 4 here, but 3 by @Semaphore\(\) on Shop\.one/,
    ],
  ])('are warned about where %s', async (_what, shop, message) => {
    expect(await warningsOf(shop)).toEqual([expect.stringMatching(message)]);
  });

  const stock = (options: Options) => lock({ value: 'stock', ...options });
  it.each([
    ['the same key function', stock({ key: sku }), stock({ key: (of) => `${String(of)}` })],
    ['different times', stock({ keyTimeout: 100, waitTimeout: 5 }), stock({ keyTimeout: 200 })],
    ['another value', stock({ value: 'stocks', fair: true }), stock({ key: sku })],
    ['several of the same permits', semaphore({}), semaphore({ count: 2 })],
    ['other permits of another key', semaphore({}), semaphore({ permits: 4, value: 'plate' })],
  ])('are not warned about with %s', async (_what, first, second) => {
    expect(await warningsOf(shopWith(first, second))).toEqual([]);
  });

  it('count the defaults of the module as their own options', async () => {
    const shop = shopWith(lock({ value: 'stock', fair: true }), lock({ value: 'stock' }));
    expect(await warningsOf(shop, { fair: true })).toEqual([]);
  });
});

describe('a class whose name looks minified', () => {
  /** As in a bundle, the class has the name when its method is decorated. */
  function classNamed(name: string, options: Options): new () => unknown {
    const named = {
      [name]: class {
        async buy() {}
      },
    }[name]!;
    const descriptor = Object.getOwnPropertyDescriptor(named.prototype, 'buy')!;
    lock(options)(named.prototype, 'buy', descriptor);
    Object.defineProperty(named.prototype, 'buy', descriptor);
    return named;
  }

  it.each(['t', 'Ab', '_a', 'e1', 'abc'])('is warned about where the key has its name: %s', async (name) => {
    const warning = `the key "${name}.buy" contains the name of the class, which looks minified`;
    expect(await warningsOf(classNamed(name, {}))).toEqual([expect.stringContaining(warning)]);
  });

  it.each<[string, string, Options]>([
    ['with a value', 't', { value: 'stock' }],
    ['under a usual name', 'Shop', {}],
  ])('is not warned about %s', async (_what, name, options) => {
    expect(await warningsOf(classNamed(name, options))).toEqual([]);
  });
});

describe('a bundle with minified names', () => {
  const SOURCE = `
    import { DistributedLock } from 'nestjs-distributed-lock';
    class StockService {
      @DistributedLock({ keyTimeout: 5000 })
      async reduce() {}
    }
    export const providers = [StockService];
  `;

  async function bundled(keepNames: boolean): Promise<(new () => { reduce(): Promise<void> })[]> {
    const { outputFiles } = await build({
      stdin: { contents: SOURCE, loader: 'ts', resolveDir: __dirname },
      bundle: true,
      minify: true,
      keepNames,
      write: false,
      format: 'cjs',
      platform: 'node',
      external: ['nestjs-distributed-lock'],
      tsconfigRaw: { compilerOptions: { experimentalDecorators: true } },
    });
    const module = { exports: {} as { providers: (new () => { reduce(): Promise<void> })[] } };
    // eslint-disable-next-line @typescript-eslint/no-implied-eval -- it is the bundle of the source above
    new Function('module', 'require', outputFiles[0]!.text)(module, () => ({ DistributedLock }));
    return module.exports.providers;
  }

  it('has another default key, and is warned about', async () => {
    const [stock] = await bundled(false);
    expect(stock!.name).toHaveLength(1);
    expect(await warningsOf(stock!)).toEqual([expect.stringContaining(`the key "${stock!.name}.reduce" contains the name of the class`)]);
  });

  it('has the key of the source where the bundler keeps names', async () => {
    const [stock] = await bundled(true);
    const { acquired, get } = await boot({ providers: [stock!] });
    await get(stock!).reduce();
    expect(acquired).toEqual(['StockService.reduce-locks']);
  });
});
