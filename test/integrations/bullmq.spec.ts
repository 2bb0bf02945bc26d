import { OnQueueEvent, OnWorkerEvent, Processor, QueueEventsHost, QueueEventsListener, WorkerHost } from '@nestjs/bullmq';
import { Inject, Scope } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import type { Job } from 'bullmq';
import { currentLease, DistributedLock } from 'nestjs-distributed-lock';
import { Gate } from '../nest/gate.js';
import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { bootQueue } from './bullmq-app.js';
import { Sales, SalesProcessor } from './bullmq-stock.js';
import { lockAmong, place, way } from './place.js';

const LONG = { keyTimeout: 60_000 };

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterEach(() => server.client().flushall());
afterAll(() => server.stop());

/** The key of the lock that the caller is in. */
const key = () => currentLease()?.key;
const isCompleted = (jobs: Job[]) => eventually(async () => (await Promise.all(jobs.map((job) => job.isCompleted()))).every(Boolean));

way('Queues', 'process of a WorkerHost of BullMQ', () => {
  it('runs a job under the lock of its data, taken once, and completes it with the result', async () => {
    const { get, add, acquired, queue } = await bootQueue(server, [Sales, SalesProcessor]);
    get(Sales).gate.open();
    const job = await add({ sku: 'apple', units: 2 });
    await isCompleted([job]);
    expect((await queue.getJob(job.id!))?.returnvalue).toBe(2);
    expect(get(Sales).sold).toEqual(['2 apple under sale-apple-locks']);
    expect(acquired).toEqual(['sale-apple-locks']);
  });

  it('is one after the other for one key, on several workers with concurrency, and beside it for another', async () => {
    const stock = { left: 40, inside: 0, most: 0 };
    const processorOf = () => {
      @Processor('sales', { concurrency: 5 })
      class Seller extends WorkerHost {
        @DistributedLock<Seller['process']>({
          ...LONG,
          value: 'seller',
          key: ({ data }) => data.sku,
          waitTimeout: Infinity,
          retryInterval: 10,
        })
        async process({ data }: Job<{ sku: string }>) {
          if (data.sku === 'pear') return gate.pass();
          stock.most = Math.max(stock.most, ++stock.inside);
          const { left } = stock; // without the lock, two read the same number here
          await new Promise((resolve) => setTimeout(resolve, 2));
          stock.left = left - 1;
          stock.inside--;
        }
      }
      return Seller;
    };
    const gate = new Gate();
    const apps = [await bootQueue(server, [processorOf()]), await bootQueue(server, [processorOf()])];
    const [{ add }] = apps as [(typeof apps)[0]];
    const pear = await add({ sku: 'pear' });
    await eventually(() => gate.arrived === 1);
    const apples = await Promise.all(Array.from({ length: 40 }, () => add({ sku: 'apple' })));
    await isCompleted(apples);
    expect(stock).toEqual({ left: 0, inside: 0, most: 1 });
    for (const { acquired } of apps) expect(acquired.length).toBeGreaterThan(0);
    expect(apps.flatMap(({ acquired }) => acquired)).toHaveLength(41);
    gate.open();
    await isCompleted([pear]);
  });

  it('may be of request scope, where the job is the request', async () => {
    const seen: unknown[] = [];
    @Processor({ name: 'sales', scope: Scope.REQUEST })
    class Scoped extends WorkerHost {
      constructor(@Inject(REQUEST) private readonly request: Job) {
        super();
      }
      @DistributedLock(LONG)
      async process(job: Job) {
        seen.push([this.request.id === job.id, key()]);
      }
    }
    const { add, acquired } = await bootQueue(server, [Scoped]);
    await isCompleted([await add({})]);
    expect(seen).toEqual([[true, 'Scoped.process-locks']]);
    expect(acquired).toEqual(['Scoped.process-locks']);
  });

  it('may be of an instance that a factory made', async () => {
    @Processor('sales')
    class Made extends WorkerHost {
      @DistributedLock(LONG)
      async process() {
        return key();
      }
    }
    const { add, acquired, queue } = await bootQueue(server, [{ provide: Made, useFactory: () => new Made() }]);
    const job = await add({});
    await isCompleted([job]);
    expect((await queue.getJob(job.id!))?.returnvalue).toBe('Made.process-locks');
    expect(acquired).toEqual(['Made.process-locks']);
  });

  it('takes jobs that were waiting before the app began, whichever module is imported first', async () => {
    const { queue, add, app } = await bootQueue(server, []);
    await add({ sku: 'apple', units: 1 });
    expect(await queue.getWaitingCount()).toBe(1);
    await app.close();
    const next = await bootQueue(server, [Sales, SalesProcessor], { isQueueFirst: true });
    next.get(Sales).gate.open();
    await eventually(async () => (await next.queue.getCompletedCount()) === 1);
    expect(next.get(Sales).sold).toEqual(['1 apple under sale-apple-locks']);
  });
});

place('Queues', '@OnWorkerEvent of BullMQ', (order) => {
  it('hears of a job under its lock, taken once', async () => {
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
    const { add, get, acquired } = await bootQueue(server, [Heard]);
    await add({ sku: 'apple' });
    await eventually(() => get(Heard).seen.length > 0);
    expect(get(Heard).seen).toEqual([['job', 'apple', 'Heard.completed-job-locks']]);
    expect(acquired).toEqual(['Heard.completed-job-locks']);
  });
});

place('Queues', '@OnQueueEvent of BullMQ', (order) => {
  it('is run by one of the instances that hear of it', async () => {
    const seen: unknown[] = [];
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
    const apps = [await bootQueue(server, [listenerOf()]), await bootQueue(server, [listenerOf()])];
    let skipped = 0;
    for (const { locks } of apps) locks.on('timeout', () => skipped++);
    const [{ add }] = apps as [(typeof apps)[0]];
    // Listening begins when its connection is there, and what was added before is not heard.
    await eventually(async () => {
      if (seen.length === 0 || skipped === 0) await add({});
      return skipped > 0 && seen.length > 0;
    });
    const ids = seen.map((entry) => (entry as [string, string])[0]);
    expect(seen).toEqual([...new Set(ids)].map((id) => [id, `Listener.added-${id}-locks`]));
    expect(apps.flatMap(({ acquired }) => acquired)).toHaveLength(seen.length);
  });
});
