// What the documents show that needs no server.
import '../support/virtual-time.js';
import type { ConflictException, Provider } from '@nestjs/common';
import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { Test, type TestingModule } from '@nestjs/testing';
import { ClsServiceManager } from 'nestjs-cls';
import { DistributedLockModule, Locks } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { createHash } from 'node:crypto';
import { eventually } from '../support/eventually.js';
import { standStill } from '../support/time.js';
import { passTime } from '../support/virtual-time.js';
import { ReportService } from './cron-lock.js';
import { OrderLinesService, OrdersController, PartnerService, Shelf } from './decorators.js';
import { examine } from './doctor.js';
import { isReady, pinoLogger } from './health-without-terminus.js';
import { changeOrder, OrderService, Product, TenantOrders } from './keys.js';
import { deadlocks, free, oldest, show, watch } from './operate.js';

const closing: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const each of closing.splice(0)) await each.close();
});

function locksOf(options: ConstructorParameters<typeof Locks>[1] = {}, store = memoryStore()): Locks {
  const locks = new Locks(store, { logger: false, ...options });
  closing.push(locks);
  return locks;
}

async function appWith(providers: Provider[], store = memoryStore()): Promise<TestingModule> {
  const imports = [DistributedLockModule.forRoot({ store, logger: false }), ScheduleModule.forRoot()];
  const app = await Test.createTestingModule({ imports, providers }).compile();
  closing.push(app);
  return app;
}

describe('docs/decorators.md', () => {
  it('answers 409 by onTimeout where the key is taken', async () => {
    const app = await appWith([OrdersController]);
    const orders = app.get(OrdersController);
    const lease = await app.get(Locks).acquire('order-7-locks', { keyTimeout: 60_000 });
    const refused = (await orders.pay('7').catch((error: unknown) => error)) as ConflictException;
    expect([refused.getStatus(), refused.message]).toEqual([409, 'This order is being paid already.']);
    await lease.release();
    expect(await orders.pay('7')).toBe('7 is paid');
  });

  it('keeps calls of one call chain apart if they are awaited one after the other, and not if they run at the same time', async () => {
    const app = await appWith([OrderLinesService, Shelf]);
    const [lines, shelf] = [app.get(OrderLinesService), app.get(Shelf)];
    await shelf.write('apple', 10);
    await Promise.all([lines.takeTwo('apple'), lines.take('apple'), lines.take('apple')]);
    expect(await shelf.read('apple')).toBe(6);
    await lines.takeTwoAtOnce('apple');
    expect(await shelf.read('apple')).toBe(5);
  });

  it('limits a rate by permits with a minHold', async () => {
    const partner = (await appWith([PartnerService])).get(PartnerService);
    await Promise.all(Array.from({ length: 11 }, (_, order) => partner.send(`order ${order}`)));
    const gaps = partner.starts.slice(5).map((start, index) => start - partner.starts[index]!);
    expect(gaps).toHaveLength(6);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1_000);
  });
});

it('docs/cron.md: a tick is run by one of three instances, also where the clocks of the others are behind', async () => {
  const sent = jest.spyOn(console, 'log').mockReturnValue();
  const ended: string[] = [];
  const store = memoryStore();
  for (let instance = 0; instance < 3; instance++) {
    const app = await appWith([ReportService], store);
    await app.init();
    app.get(Locks).on('released', () => ended.push('sent'));
    app.get(Locks).on('timeout', () => ended.push('skipped'));
    for (const job of app.get(SchedulerRegistry).getCronJobs().values()) void job.fireOnTick();
    await passTime(1_000);
    await expect(app.get(ReportService).sendReport()).resolves.toBeUndefined(); // skipped: no error
  }
  expect([sent.mock.calls, ended]).toEqual([[['All is well.']], ['sent', ...Array(5).fill('skipped')]]);
  sent.mockRestore();
});

it('docs/keys.md: keys are those that the comments name', async () => {
  /** As lib/stores/redis/WIRE-FORMAT.md says, of a canonical form. */
  const digest = (form: string) => createHash('sha256').update(form).digest('hex').slice(0, 32);
  const order = (note?: string) => ({ id: 42, customer: { id: 'C-1' }, note });
  const app = await appWith([OrderService, TenantOrders]);
  const orders = app.get(OrderService);
  const keys: string[] = [];
  app.get(Locks).on('acquired', ({ key }) => keys.push(key));
  await orders.importAll();
  await orders.ship(order());
  await orders.invoice(order(), 2030);
  await orders.pack(order('a note'), 1);
  await orders.pack(order('another'), 1);
  await orders.reprice(new Product('apple', new Date(0)));
  await orders.reprice(new Product('apple', new Date(1)));
  const [parcel, product] = [`shop-parcel-${digest('"C-1"1;')}-locks`, `shop-product-${digest('[1{"0"K"apple"}')}-locks`];
  expect(keys.slice(0, 3)).toEqual(['shop-OrderService.importAll-locks', 'shop-order-42-locks', 'shop-invoice-C%2D1-2030-locks']);
  expect(keys.slice(3)).toEqual([parcel, parcel, product, product]);
  await changeOrder(app.get(Locks), order(), async () => undefined);
  expect(keys.at(-1)).toBe(app.get(Locks).keyOf(OrderService, 'ship', order()));
  await ClsServiceManager.getClsService().runWith({ tenant: 'acme' } as never, () => app.get(TenantOrders).ship(42));
  expect(keys.at(-1)).toBe('order-acme-42-locks');
});

it('docs/doctor.md: says what the store is fit for', async () => {
  const [verdict, least] = await examine(locksOf());
  expect(verdict).toBe('Efficiency: yes. Correctness: yes, and check the fencing token if you can.');
  expect(least).toMatch(/^keyTimeout of \d+ ms or more$/);
});

describe('docs/health.md', () => {
  it('a program without Nest knows whether its locks work, and logs fields', async () => {
    const lines: [unknown, string][] = [];
    const write = (fields: unknown, message: string) => void lines.push([fields, message]);
    const locks = locksOf({ logger: pinoLogger({ warn: write, error: write, info: write, debug: write }) });
    expect(await isReady(locks)).toBe(true);
    const { owner, fencingToken: token } = await locks.acquire('key', { keyTimeout: 6_000 });
    await locks.store.mutex.release({ key: 'key', owner, keepFor: 0 });
    await passTime(6_000);
    expect(lines).toEqual([[{ key: 'key', label: undefined, owner, token }, expect.stringMatching(/^Lost "key" after/)]]);
  });

  it('is degraded after the event loop was blocked', async () => {
    const warn = jest.spyOn(console, 'warn').mockImplementation();
    const locks = locksOf();
    const lease = await locks.acquire('key', { keyTimeout: 6_000 });
    await passTime(1_000);
    standStill(3_000);
    await passTime(1_000);
    expect(await isReady(locks)).toBe(true);
    expect(warn.mock.calls).toEqual([['the event loop was blocked within the last minute']]);
    warn.mockRestore();
    await lease.release();
  });
});

describe('docs/operate.md', () => {
  it('shows the holder and the waiters of a key', async () => {
    const locks = locksOf({ app: 'shop' });
    const lease = await locks.acquire('order:42', { label: 'OrderService.pay' });
    const waits = locks.acquire('order:42', { waitTimeout: Infinity });
    expect(await show(locks)).toEqual([
      expect.stringMatching(/^mutex, held by shop@\S+ \(OrderService\.pay\) since \d{4}-/),
      expect.stringMatching(/^waits: shop@\S+:\d+, 1 callers$/),
    ]);
    expect([await oldest(locks), await deadlocks(locks)]).toEqual([[], []]);
    const freed = free(locks);
    await eventually(() => lease.signal.aborted);
    await lease.release();
    expect(await freed).toEqual({ outcome: 'gave back', holder: lease.owner });
    await (await waits).release();
  });

  it('prints what happens to keys until the signal aborts', async () => {
    const locks = locksOf({ app: 'shop' });
    const ends = new AbortController();
    const watched = watch(locks, ends.signal);
    const other = locksOf({ app: 'worker' }, locks.store);
    const held = await locks.acquire('order:7');
    await other.acquire('order:7', { label: 'OrderService.pay', waitTimeout: 100 }).catch(() => undefined);
    await passTime(1_500);
    ends.abort();
    expect(await watched).toEqual([`order:7: timeout, OrderService.pay of worker:${process.pid}`]);
    await held.release();
  });
});
