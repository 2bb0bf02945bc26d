import { Controller, Get, HttpStatus, type INestApplication } from '@nestjs/common';
import { DistributedLock, DistributedLockModule, LockConfigError, Locks, LockTimeoutError, StoreError } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { boot, listen } from './boot.js';
import { refusalOf } from './refusal.js';

const lock = DistributedLock as (options?: unknown) => MethodDecorator;

function shopWith(options: unknown) {
  class Shop {
    @lock(options)
    async buy(_order?: unknown): Promise<number> {
      return 5;
    }
  }
  return Shop;
}

describe('an unknown option', () => {
  it.each([
    ['ttl', 'keyTimeout'],
    ['leaseTime', 'keyTimeout'],
    ['keyTimeOut', 'keyTimeout'],
    ['keytimeot', 'keyTimeout'],
    ['timeout', 'waitTimeout'],
    ['retries', 'retryCount'],
    ['retryDelay', 'retryInterval'],
    ['paramlock', 'paramLock'],
    ['reentrent', 'reentrant'],
  ])('%s of a decorator suggests %s', (name, meant) => {
    expect(refusalOf(() => shopWith({ [name]: 5 }))).toBe(
      `@DistributedLock() on Shop.buy: unknown option "${name}". Did you mean "${meant}"?`,
    );
  });

  it('that is like no other suggests nothing', () => {
    expect(refusalOf(() => shopWith({ colour: 5 }))).toBe('@DistributedLock() on Shop.buy: unknown option "colour".');
  });

  it('of the module or of Locks suggests the nearest too', () => {
    const store = memoryStore();
    expect(refusalOf(() => DistributedLockModule.forRoot({ store, nameSpace: 'a' } as never))).toContain('Did you mean "namespace"?');
    expect(refusalOf(() => new Locks(store, { shutdownTimout: 5 } as never))).toContain('Did you mean "shutdownTimeout"?');
  });

  it.each<[string, unknown, string]>([
    [
      'host beside the options',
      { host: 'localhost', port: 6379 },
      '"host" is an option of ioredis: write redisStore({ options: { host } })',
    ],
    ['a client passed bare', { evalsha: () => undefined }, 'a client is passed as redisStore({ client })'],
    ['a URL passed bare', 'redis://localhost', 'the options must be an object: redisStore({ url })'],
    ['an empty url', { url: '' }, '"url" must be a URL such as redis://localhost:6379, not \'\''],
    ['a misspelled option', { uri: 'redis://localhost' }, 'unknown option "uri". Did you mean "url"?'],
  ])('of redisStore says what to write: %s', (_what, options, message) => {
    expect(refusalOf(() => redisStore(options as never))).toContain(message);
  });
});

describe('a key function that throws', () => {
  it('is a LockConfigError that names the method, once, and has what was thrown as its cause', async () => {
    const { get } = await boot({
      providers: [shopWith({ key: (order: { id: string }) => order.id })].map((shop) => ({ provide: 'shop', useClass: shop })),
    }).then(({ app }) => ({ get: () => app.get<{ buy(order?: unknown): Promise<number> }>('shop') }));
    const error = await get()
      .buy(undefined)
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockConfigError);
    const { message, cause } = error as Error;
    expect(message).toMatch(/^@DistributedLock\(\) on Shop\.buy: key threw TypeError: Cannot read properties of undefined/);
    expect(cause).toBeInstanceOf(TypeError);
  });
});

describe('without the exception filter', () => {
  @Controller()
  class ShopController {
    @Get()
    @DistributedLock({ value: 'stock', waitTimeout: 0 })
    async reduce(): Promise<string> {
      return 'sold';
    }
  }
  const logged: string[] = [];

  async function get(app: INestApplication) {
    const logger = { log() {}, warn() {}, error: (error: Error) => void logged.push(`${error.stack}`) };
    app.useLogger(logger);
    return fetch(await listen(app));
  }
  beforeEach(() => void (logged.length = 0));

  it.each([
    ['a timeout', 'taken' as const, LockTimeoutError],
    ['an outage', 'outage' as const, StoreError],
  ])('%s is a 500 whose error names class and method', async (_what, failure, type) => {
    const store = memoryStore();
    if (failure === 'outage') {
      store.mutex.acquire = () => Promise.reject(new StoreError('The store is away.', { transient: true }));
    }
    const { app, locks } = await boot({ controllers: [ShopController] }, { store });
    const holder = failure === 'taken' ? await locks.acquire('stock-locks') : undefined;
    const response = await get(app);
    expect(response.status).toBe(HttpStatus.INTERNAL_SERVER_ERROR);
    expect(logged).toEqual([expect.stringMatching(`^(Error|${type.name}): ShopController\\.reduce: `)]);
    await holder?.release();
  });
});
