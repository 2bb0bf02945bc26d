import '../support/virtual-time.js';
import { Inject, Injectable, Module, type Provider } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { currentLease, DistributedLock, DistributedLockModule, Locks, LockTimeoutError } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { DistributedLockTestingModule, LockProbe } from 'nestjs-distributed-lock/testing';
import { lockMatchers } from 'nestjs-distributed-lock/testing/jest';
import { expectRefused } from '../nest/refusal.js';
import { way } from './ways.js';

class Shelf {
  async take(sku: string): Promise<string> {
    return sku;
  }
}

@Injectable()
class StockService {
  readonly keys: unknown[] = [];
  constructor(@Inject(Shelf) private readonly shelf: Shelf) {}

  @DistributedLock<StockService['reduce']>({ value: 'stock', key: (sku) => sku, keyTimeout: 60_000, waitTimeout: 0 })
  async reduce(sku: string): Promise<string> {
    this.keys.push(currentLease()?.key);
    return this.shelf.take(sku);
  }
}

@Injectable()
class Till {
  constructor(@Inject(StockService) private readonly stock: StockService) {}
  async sell(sku: string): Promise<string> {
    return `sold: ${await this.stock.reduce(sku)}`;
  }
}

const KEY = 'stock-apple-locks';
const closing: { close(): Promise<void> }[] = [];
afterEach(async () => {
  jest.restoreAllMocks();
  for (const module of closing.splice(0)) await module.close();
});
const locksModule = () => DistributedLockModule.forRoot({ store: memoryStore(), logger: false });

@Module({ imports: [locksModule()], providers: [StockService, Shelf, Till] })
class AppModule {}

/** Who makes the instance. */
const MAKERS: [string, Provider<StockService>][] = [
  ['Nest makes', StockService],
  ['a factory makes', { provide: StockService, inject: [Shelf], useFactory: (shelf: Shelf) => new StockService(shelf) }],
];

/** As most unit tests have it: compiled, and not initialized. */
async function compile(provider: Provider<StockService> = StockService) {
  const module = await Test.createTestingModule({ imports: [locksModule()], providers: [provider, Shelf, Till] }).compile();
  closing.push(module);
  const acquired: string[] = [];
  module.get(Locks, { strict: false }).on('acquired', ({ key }) => acquired.push(key));
  return { module, acquired, stock: module.get(StockService), till: module.get(Till) };
}

way('Unit tests', 'Test.createTestingModule with memoryStore', () => {
  it.each(MAKERS)('is locked on what %s, also without init()', async (_who, provider) => {
    const { module, stock, acquired } = await compile(provider);
    expect(await stock.reduce('apple')).toBe('apple');
    await using _lease = await module.get(Locks).acquire(KEY, { keyTimeout: 60_000 });
    await expect(stock.reduce('apple')).rejects.toBeInstanceOf(LockTimeoutError);
    expect([stock.keys, acquired]).toEqual([[KEY], [KEY, KEY]]);
  });
});

way('Unit tests', 'DistributedLockTestingModule', () => {
  it('is locked in memory, in a whole app', async () => {
    expect.extend(lockMatchers);
    // #region testing-replace
    const builder = Test.createTestingModule({ imports: [AppModule] });
    const module = await DistributedLockTestingModule.replace(builder).compile();
    await module.get(Till).sell('apple');
    expect(module.get(LockProbe)).toHaveLocked('stock-apple-locks', { by: 'StockService.reduce' });
    // #endregion
    closing.push(module);
  });
});

way('Unit tests', 'overrideProvider', () => {
  it('puts a mock in the place of the locked class: no lock is taken', async () => {
    // #region testing-override
    const reduce = jest.fn().mockResolvedValue('mocked');
    const builder = Test.createTestingModule({ imports: [AppModule] });
    const module = await builder.overrideProvider(StockService).useValue({ reduce }).compile();
    expect(await module.get(Till).sell('apple')).toBe('sold: mocked');
    // #endregion
    closing.push(module);
    expect(reduce.mock.calls).toEqual([['apple']]);
  });
});

way('Unit tests', 'jest.spyOn', () => {
  it('may give another result, once, in the place of the body and its lock', async () => {
    const { stock, till, acquired } = await compile();
    // #region testing-spy
    jest.spyOn(stock, 'reduce').mockResolvedValueOnce('mocked');
    expect(await till.sell('apple')).toBe('sold: mocked'); // no lock, no body
    expect(await till.sell('apple')).toBe('sold: apple'); // locked again
    // #endregion
    expect([stock.keys, acquired]).toEqual([[KEY], [KEY]]);
  });

  it.each(MAKERS)('of the prototype, before an instance that %s, sees its calls, which stay locked', async (_who, provider) => {
    const spy = jest.spyOn(StockService.prototype, 'reduce');
    const { module, stock, acquired } = await compile(provider);
    await module.init();
    expect(await stock.reduce('apple')).toBe('apple');
    expect([spy.mock.calls, stock.keys, acquired]).toEqual([[['apple']], [KEY], [KEY]]);
  });
});

way('Unit tests', 'useMocker', () => {
  it('is locked where the module of locks is imported: the mocker is not asked for it', async () => {
    // #region testing-mocker
    const module = await Test.createTestingModule({
      imports: [DistributedLockModule.forRoot({ store: memoryStore() })],
      providers: [StockService],
    })
      .useMocker((token) => (token === Shelf ? { take: jest.fn().mockResolvedValue('mocked') } : undefined))
      .compile();
    expect(await module.get(StockService).reduce('apple')).toBe('mocked'); // locked, in memory
    // #endregion
    closing.push(module);
    expect(module.get(StockService).keys).toEqual([KEY]);
  });

  it('says at compile() what is missing where the mocker knows classes only', async () => {
    const mocker = (token: unknown) => (typeof token === 'function' ? {} : undefined);
    const compiled = Test.createTestingModule({ providers: [StockService] })
      .useMocker(mocker)
      .compile();
    await expect(compiled).rejects.toThrow('@DistributedLock() found, but DistributedLockModule.forRoot() is not imported');
  });

  /** As createMock() of well-known libraries: whatever is asked of it is a function that answers with such a mock. */
  function deepMock(): object {
    const answers = new Map<string | symbol, unknown>();
    return new Proxy(() => undefined, {
      get(_target, name) {
        if (name === 'then') return undefined;
        if (!answers.has(name)) answers.set(name, deepMock());
        return answers.get(name);
      },
      apply: () => deepMock(),
    });
  }

  it.each([
    ['an empty object', () => ({})],
    ['automatic mocks', () => ({ intercept: jest.fn(), take: jest.fn() })],
    ['deep mocks', deepMock],
  ])('never runs unlocked where the mocker answers everything, with %s: a clear error', async (_what, mocker) => {
    const module = await Test.createTestingModule({ providers: [StockService] })
      .useMocker(mocker)
      .compile();
    closing.push(module);
    const stock = module.get(StockService);
    await expectRefused(stock.reduce('apple'), /StockService\.reduce.*DistributedLockModule\.forRoot/);
    expect(stock.keys).toEqual([]);
  });
});
