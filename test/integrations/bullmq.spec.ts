import { OnQueueEvent, OnWorkerEvent, Processor, QueueEventsHost, QueueEventsListener, WorkerHost } from '@nestjs/bullmq';
import type { Job, WorkerOptions } from 'bullmq';
import { DistributedLock, type DistributedLockOptions } from 'nestjs-distributed-lock';
import { Gate } from '../support/gate.js';
import { eventually } from '../support/eventually.js';
import { SharedCounter } from '../support/shared-counter.js';
import { useRedis } from '../stores/redis/setting.js';
import { bootQueue } from './bullmq-app.js';
import { DelayingProcessor, retries, Sales, SalesProcessor, type Sale } from './bullmq-stock.js';
import { key, lockAmong, aboveAndBelow, way } from './ways.js';

const LONG = { keyTimeout: 60_000 };
const APPLE = { sku: 'apple', units: 1 };
const SOLD = '1 apple under sale-apple-locks';

const setting = useRedis();

way('Queues', 'process of a WorkerHost of BullMQ', () => {
  it('runs a job under the lock of its data, taken once, and completes it with the result', async () => {
    const { get, add, acquired, resultOf } = await bootQueue(setting.server, [Sales, SalesProcessor]);
    get(Sales).gate.open();
    expect(await resultOf(await add({ sku: 'apple', units: 2 }))).toBe(2);
    expect([get(Sales).sold, acquired]).toEqual([['2 apple under sale-apple-locks'], ['sale-apple-locks']]);
  });

  it('is one after the other for one key, on several workers with concurrency, and beside it for another', async () => {
    const counter = new SharedCounter();
    const gate = new Gate();
    const work = ({ data }: Job<Sale>) => (data.sku === 'pear' ? gate.pass() : counter.increment());
    const processorOf = () => sellerOf({ key: ({ data }: Job<Sale>) => data.sku, waitTimeout: Infinity }, { concurrency: 5 }, work);
    const apps = [await bootQueue(setting.server, [processorOf()]), await bootQueue(setting.server, [processorOf()])];
    const [{ add, resultOf }] = apps as [(typeof apps)[0]];
    const pear = await add({ sku: 'pear' });
    await eventually(() => gate.arrived === 1);
    const apples = await Promise.all(Array.from({ length: 20 }, () => add({ sku: 'apple' })));
    await Promise.all(apples.map(resultOf));
    expect(counter).toMatchObject({ value: 20, overlaps: 0 });
    for (const { acquired } of apps) expect(acquired.length).toBeGreaterThan(0);
    expect(apps.flatMap(({ acquired }) => acquired)).toHaveLength(21);
    gate.open();
    await resultOf(pear);
  });

  it('takes jobs that were waiting before the app began, whichever module is imported first', async () => {
    const { queue, add, app } = await bootQueue(setting.server, []);
    await add(APPLE);
    expect(await queue.getWaitingCount()).toBe(1);
    await app.close();
    const next = await bootQueue(setting.server, [Sales, SalesProcessor], { isQueueFirst: true });
    next.get(Sales).gate.open();
    await eventually(async () => (await next.queue.getCompletedCount()) === 1);
    expect(next.get(Sales).sold).toEqual([SOLD]);
  });
});

aboveAndBelow('Queues', '@OnWorkerEvent of BullMQ', (order) => {
  it('handles the event under its lock, taken once', async () => {
    @Processor('sales')
    class Heard extends WorkerHost {
      seen: unknown[] = [];
      async process(job: Job<{ sku: string }>) {
        return job.data.sku;
      }
      @lockAmong(order, { ...LONG, key: (job: Job) => job.name }, OnWorkerEvent('completed'))
      async completed(job: Job, result: string) {
        this.seen.push([job.name, result, key()]);
      }
    }
    const { add, get, acquired } = await bootQueue(setting.server, [Heard]);
    await add({ sku: 'apple' });
    await eventually(() => get(Heard).seen.length > 0);
    expect(get(Heard).seen).toEqual([['job', 'apple', 'Heard.completed-job-locks']]);
    expect(acquired).toEqual(['Heard.completed-job-locks']);
  });
});

aboveAndBelow('Queues', '@OnQueueEvent of BullMQ', (order) => {
  it('runs in one of the instances that receive it', async () => {
    const seen: [jobId: string, lock: string][] = [];
    const listenerOf = () => {
      @QueueEventsListener('sales')
      class Listener extends QueueEventsHost {
        @lockAmong(
          order,
          { ...LONG, key: ({ jobId }: { jobId: string }) => jobId, waitTimeout: 0, onTimeout: 'skip', minHold: 60_000 },
          OnQueueEvent('added'),
        )
        async added({ jobId }: { jobId: string }) {
          seen.push([jobId, key()]);
        }
      }
      return Listener;
    };
    const apps = [await bootQueue(setting.server, [listenerOf()]), await bootQueue(setting.server, [listenerOf()])];
    let skipped = 0;
    for (const { locks } of apps) locks.on('timeout', () => skipped++);
    const [{ add }] = apps as [(typeof apps)[0]];
    // What is added before an instance listens is lost for it.
    await eventually(async () => {
      if (seen.length === 0 || skipped === 0) await add({});
      return skipped > 0 && seen.length > 0;
    });
    await eventually(() => expect(apps.flatMap(({ acquired }) => acquired).sort()).toEqual(seen.map(([, lock]) => lock).sort()));
    expect(seen).toEqual([...new Map(seen)].map(([id]) => [id, `Listener.added-${id}-locks`]));
  });
});

/** Its jobs pass a gate, or do what the test says, under the lock `seller`. */
function sellerOf(options: DistributedLockOptions, worker: Omit<WorkerOptions, 'connection'> = {}, work?: (job: Job<Sale>) => unknown) {
  @Processor('sales', worker)
  class Seller extends WorkerHost {
    readonly gate = new Gate();
    runs = 0;
    inside = 0;
    @DistributedLock({ ...LONG, value: 'seller', retryInterval: 20, ...options })
    async process(job: Job<Sale>) {
      this.runs++;
      this.inside++;
      await (work ? work(job) : this.gate.pass());
      this.inside--;
      return key();
    }
  }
  return Seller;
}

describe('a job that finds its key taken', () => {
  it('fails when its wait timeout is over, and is tried again by its attempts and backoff', async () => {
    const Seller = sellerOf({ waitTimeout: 0 });
    const { locks, add, get, queue } = await bootQueue(setting.server, [Seller]);
    get(Seller).gate.open();
    const lease = await locks.acquire('seller-locks', LONG);
    const job = await add({}, { ...retries, attempts: 1_000_000, backoff: { type: 'fixed', delay: 20 } });
    await eventually(async () => (await queue.getJob(job.id!))!.attemptsMade > 1);
    expect((await queue.getJob(job.id!))?.failedReason).toContain('seller-locks');
    expect(get(Seller).runs).toBe(0);
    await lease.release();
    await eventually(() => job.isCompleted());
    expect(get(Seller).runs).toBe(1);
  });

  it('is lost with onTimeout skip: it counts as completed, and was not run', async () => {
    const Seller = sellerOf({ waitTimeout: 0, onTimeout: 'skip' });
    const { locks, add, get } = await bootQueue(setting.server, [Seller]);
    await locks.acquire('seller-locks', LONG);
    const job = await add({});
    await eventually(() => job.isCompleted());
    expect(get(Seller).runs).toBe(0);
  });

  it('is put off without costing an attempt where its processor says DelayedError', async () => {
    const { locks, add, get, queue } = await bootQueue(setting.server, [Sales, DelayingProcessor]);
    get(Sales).gate.open();
    const lease = await locks.acquire('sale-apple-locks', LONG);
    const job = await add(APPLE);
    await eventually(() => job.isDelayed());
    expect(get(Sales).sold).toEqual([]);
    await lease.release();
    await eventually(() => job.isCompleted());
    expect(await queue.getJob(job.id!)).toMatchObject({ attemptsMade: 1, returnvalue: 1 });
    expect(get(Sales).sold).toEqual([SOLD]);
  });

  it('keeps the lock of BullMQ on itself while it waits: its worker renews it', async () => {
    const Seller = sellerOf({ waitTimeout: Infinity }, { lockDuration: 60_000, lockRenewTime: 50 });
    const { locks, add, get, resultOf } = await bootQueue(setting.server, [Seller]);
    get(Seller).gate.open();
    const lease = await locks.acquire('seller-locks', LONG);
    const job = await add({});
    await eventually(() => job.isActive());
    let left = 60_000;
    await eventually(async () => {
      const before = left;
      left = await setting.redis.pttl(`bull:sales:${job.id}:lock`);
      return left > before;
    });
    await lease.release();
    expect(await resultOf(job)).toBe('seller-locks');
    expect(get(Seller).runs).toBe(1);
  });
});

describe('a locked job', () => {
  it.each([
    ['fails and runs again by its attempts', {}, 2],
    ["completes with onLost: 'ignore'", { onLost: 'ignore' } as const, 1],
  ])('that ends well after its lease was lost %s', async (_what, options, runs) => {
    const Seller = sellerOf({ ...options, waitTimeout: Infinity });
    const { locks, add, get, resultOf, acquired } = await bootQueue(setting.server, [Seller]);
    const isLost = new Promise((resolve) => locks.on('lost', resolve));
    const job = await add(APPLE, { attempts: 2 });
    await eventually(() => get(Seller).runs === 1);
    await locks.forceRelease(acquired[0]!, { reason: 'to lose it', grace: 0 });
    await isLost;
    get(Seller).gate.open();
    expect(await resultOf(job)).toBe('seller-locks');
    expect(get(Seller).runs).toBe(runs);
  });

  it('that BullMQ takes for stalled and gives to another worker is not run there until the first run has ended', async () => {
    const [First, Second] = [
      sellerOf({}, { lockDuration: 100, stalledInterval: 100, skipLockRenewal: true }),
      sellerOf({ waitTimeout: Infinity }, { stalledInterval: 100 }),
    ];
    const first = await bootQueue(setting.server, [First]);
    first.get(First).worker.on('error', () => undefined); // BullMQ reports the job that it has taken away
    const job = await first.add({});
    await eventually(() => first.get(First).runs === 1);

    const second = await bootQueue(setting.server, [Second]);
    const acquire = jest.spyOn(second.locks.store.mutex, 'acquire');
    await eventually(() => acquire.mock.calls.length > 2);
    expect(second.get(Second).runs).toBe(0);
    first.get(First).gate.open();
    await eventually(() => second.get(Second).runs === 1);
    expect(first.get(First).inside).toBe(0);
    second.get(Second).gate.open();
    await eventually(() => job.isCompleted());
  });

  it('is reported to a locked event handler when it fails', async () => {
    class NoSales extends Sales {
      override async sell(): Promise<never> {
        throw new Error('sold out');
      }
    }
    const { add, get, acquired } = await bootQueue(setting.server, [{ provide: Sales, useClass: NoSales }, SalesProcessor]);
    await add(APPLE);
    await eventually(() => get(Sales).failures.length > 0);
    expect(get(Sales).failures).toEqual(['apple: sold out']);
    expect(acquired).toEqual(['sale-apple-locks', 'sales-report-locks']);
  });
});

describe('an app that closes with jobs in its queue', () => {
  /** Twenty are sold, and the next ones when the app is closing. */
  class SlowSales extends Sales {
    override async sell(sale: Sale): Promise<number> {
      if (this.sold.length >= 20) return super.sell(sale);
      this.sold.push(sale.sku);
      return sale.units;
    }
  }

  it.each([
    ['where the locks are imported before the queue, since they close after it', SalesProcessor, false],
    ['in the other order where the processor pauses its worker and puts off what comes too late', DelayingProcessor, true],
  ])('fails none of them %s', async (_where, processor, isQueueFirst) => {
    const { app, get, add } = await bootQueue(setting.server, [{ provide: Sales, useClass: SlowSales }, processor], { isQueueFirst });
    const { sold, gate } = get(Sales);
    await Promise.all(Array.from({ length: 100 }, (_, units) => add({ sku: `sku-${units}`, units })));
    await eventually(() => gate.arrived === 10);
    const closed = app.close();
    gate.open();
    await closed;
    expect(await setting.redis.zcard('bull:sales:failed')).toBe(0);
    expect(sold.length).toBeLessThan(100);
  });

  it('puts off a job that waits for its lock, where the processor says so', async () => {
    class Waiting extends DelayingProcessor {
      @DistributedLock({ value: 'waiting', ...LONG, waitTimeout: Infinity })
      override async sell() {
        return 0;
      }
    }
    const { app, add, locks } = await bootQueue(setting.server, [Sales, Waiting], { isQueueFirst: true });
    const waits = new Promise((resolve) => locks.on('waiting', resolve));
    await locks.acquire('waiting-locks', LONG);
    await add(APPLE);
    await waits;
    await app.close();
    expect(await setting.redis.zcard('bull:sales:delayed')).toBe(1);
    expect(await setting.redis.zcard('bull:sales:failed')).toBe(0);
  });
});
