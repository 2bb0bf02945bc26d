// What docs/waiting.md says, on a real server and on running apps.
import type { INestApplication } from '@nestjs/common';
import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import { DistributedLockModule, LockAbortedError, Locks, LockTimeoutError, type LocksOptions } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import type { AddressInfo } from 'node:net';
import type { Server } from 'node:http';
import type { RedisOptions } from 'ioredis';
import { eventually } from '../support/eventually.js';
import { Gate } from './stand-ins/gate.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';
import { BasketController, closeBooks, filter, NightShift, WaitMetrics, Work } from './waiting.js';

const KEY = 'order:42';
/** For what a busy machine adds. */
const SLACK = 2_500;

const setting = useRedisOfEnv();
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Another process, as far as the locks are concerned. */
function openLocks(user: RedisOptions = {}, options: LocksOptions = {}): Locks {
  const store = redisStore({ options: { ...setting.server.connection, ...user }, requestTimeout: 5_000 });
  const locks = new Locks(store, { logger: false, defaults: { keyTimeout: 60_000, waitTimeout: 60_000 }, ...options });
  ends.push(() => locks.close());
  return locks;
}

async function countOf(command: string): Promise<number> {
  const stats = await setting.redis.info('commandstats');
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

async function requestsOf(work: () => Promise<unknown>): Promise<number> {
  const before = await countOf('evalsha');
  await work();
  return (await countOf('evalsha')) - before;
}

const inboxes = async (): Promise<number> =>
  String(await setting.redis.call('CLIENT', 'LIST', 'TYPE', 'pubsub')).match(/^id=/gm)?.length ?? 0;
const queued = (count: number, key = KEY) => eventually(async () => (await setting.redis.zcard(`{${key}}:queue`)) === count);

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work().catch(() => undefined);
  return performance.now() - start;
}

describe('how waiting works', () => {
  it('a free key is one request, and no inbox', async () => {
    const locks = openLocks();
    await (await locks.acquire('warm-up')).release();
    expect(await requestsOf(() => locks.acquire(KEY))).toBe(1);
    expect(await inboxes()).toBe(0);
  });

  it('calls of one process pass the key on among themselves, up to 32 in a row, with a token each', async () => {
    const locks = openLocks();
    const metrics = new WaitMetrics(locks);
    metrics.onModuleInit();
    const tokens: number[] = [];
    const attempts: number[] = [];
    locks.on('acquired', (event) => attempts.push(event.attempts));
    const calls = Array.from({ length: 100 }, () => locks.using(KEY, async ({ fencingToken }) => tokens.push(fencingToken!)));
    const requests = await requestsOf(() => Promise.all(calls));

    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    expect(metrics).toMatchObject({ waits: { length: 100 }, requests: 100 - metrics.handOvers });
    expect(requests).toBeLessThan(50); // 6, where nothing takes 50 ms
    const rows = attempts.join('').split(/[^0]/);
    expect(Math.max(...rows.map((row) => row.length))).toBeLessThan(32);
    expect(await inboxes()).toBe(0);
  });

  it('a waiter of another process queues once for all of its own, and is told of a release (G8)', async () => {
    const holder = await openLocks().acquire(KEY);
    const other = openLocks();
    const asked = await countOf('evalsha');
    const waits = Array.from({ length: 20 }, () => other.using(KEY, async () => undefined, { retryInterval: 60_000 }));
    await queued(1);
    expect(await inboxes()).toBe(1);
    await holder.release();
    expect(await timeOf(() => Promise.all(waits))).toBeLessThan(SLACK); // its own look is 30 s away
    expect((await countOf('evalsha')) - asked).toBeLessThan(15); // 5: ask, join, take and release, and the holder's release
  });

  it('a message that is lost costs two retryIntervals at most (G8)', async () => {
    const holder = await openLocks().acquire(KEY);
    const wait = openLocks().acquire(KEY, { retryInterval: 500 });
    await queued(1);
    const asked = await countOf('evalsha');
    await eventually(async () => (await countOf('evalsha')) > asked); // it has looked, and will again in a second
    await setting.redis.del(KEY); // as the classic recipe gives a lock back: nobody is told
    expect(await timeOf(() => wait)).toBeLessThan(1_000 + SLACK);
    expect(await holder.release()).toBe(false);
  });

  it('without the right to the channel waiters poll, and the log says so', async () => {
    await setting.redis.acl('SETUSER', 'poor', 'on', '>pass', '~*', '+@all', 'resetchannels');
    const warn = jest.fn();
    const holder = await openLocks().acquire(KEY);
    const wait = openLocks({ username: 'poor', password: 'pass' }, { logger: { warn, error: warn } }).acquire(KEY, { waitTimeout: 60_000 });
    await eventually(() =>
      expect(warn).toHaveBeenCalledWith(expect.stringContaining('allow the channels nestjs-distributed-lock:inbox:*')),
    );
    await holder.release();
    expect(await timeOf(() => wait)).toBeLessThan(1_000 + SLACK);
    expect(warn).toHaveBeenCalledTimes(1);
  });
});

describe('how long to wait', () => {
  /** An instance of the app, whose work ends when the gate says so. */
  async function instance(gate = new Gate(), done: string[] = []): Promise<INestApplication> {
    const work: Work = { do: (what) => gate.pass().then(() => (done.push(what), what)) };
    const store = redisStore({ options: setting.server.connection, requestTimeout: 5_000 });
    const testing = await Test.createTestingModule({
      imports: [DistributedLockModule.forRoot({ store, logger: false }), ScheduleModule.forRoot()],
      controllers: [BasketController],
      providers: [NightShift, WaitMetrics, filter, { provide: Work, useValue: work }],
    }).compile();
    const app = await testing.createNestApplication().init();
    ends.push(
      () => app.close(),
      () => gate.open(),
    );
    return app;
  }
  const shiftOf = (app: INestApplication): NightShift => app.get(NightShift);

  it('a request is answered in two seconds: 423 where the key stays taken', async () => {
    const app = await instance();
    const server = (await app.listen(0, '127.0.0.1')) as Server;
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/baskets/7/order`;
    const post = () => fetch(url, { method: 'POST', headers: { connection: 'close' } });
    await setting.redis.set('basket-7-locks', 'another instance', 'PX', 60_000);
    let status = 0;
    const took = await timeOf(async () => void ({ status } = await post()));
    expect(status).toBe(423);
    expect(took).toBeGreaterThanOrEqual(2_000);
    expect(took).toBeLessThan(2_000 + SLACK);
  });

  it('a cron runs on one instance, and the other skips it at once', async () => {
    const [gate, done] = [new Gate(), [] as string[]];
    const [first, second] = [await instance(gate, done), await instance(gate, done)];
    for (const job of first.get(SchedulerRegistry).getCronJobs().values()) void job.fireOnTick();
    await eventually(() => gate.arrived === 1);
    await expect(shiftOf(second).report()).resolves.toBeUndefined();
    gate.open();
    await eventually(() => done.length === 1);
    await expect(shiftOf(second).report()).resolves.toBeUndefined();
    expect(gate.arrived).toBe(1);
  });

  it('a job waits for one to two seconds, and then it is for the queue to try it again', async () => {
    const app = await instance();
    await setting.redis.set('stock-apple-locks', 'another instance', 'PX', 60_000);
    let waited = 0;
    app.get(Locks).on('timeout', (event) => (waited = event.waited));
    await expect(shiftOf(app).book('apple')).rejects.toThrow(LockTimeoutError);
    expect(waited).toBeGreaterThanOrEqual(1_000);
    expect(waited).toBeLessThan(3_000);
  });

  it('a batch waits until it has the key', async () => {
    const gate = new Gate();
    const [first, second] = [await instance(gate), await instance(gate)];
    const calls = [first, second].map((app) => shiftOf(app).closeBooks());
    await queued(1, 'ledger-locks');
    expect(gate.arrived).toBe(1);
    gate.open();
    await expect(Promise.all(calls)).resolves.toEqual(['close books', 'close books']);
  });

  it('a batch waits no longer when its app closes', async () => {
    const holder = await openLocks().acquire('ledger-locks');
    const app = await instance();
    const wait = expect(shiftOf(app).closeBooks()).rejects.toThrow(LockAbortedError);
    await queued(1, 'ledger-locks');
    await app.close();
    await wait;
    await holder.release();
  });

  it('a program waits until its signal aborts', async () => {
    const holder = await openLocks().acquire('ledger');
    const [locks, caller, work] = [openLocks(), new AbortController(), jest.fn(async () => 'closed')];
    const wait = expect(closeBooks(locks, work, caller.signal)).rejects.toThrow(LockAbortedError);
    await queued(1, 'ledger');
    caller.abort();
    await wait;
    expect(work).not.toHaveBeenCalled();
    await holder.release();
    await expect(closeBooks(locks, work, new AbortController().signal)).resolves.toBe('closed');
  });

  it('buyers of tickets have their turn in the order in which they came, on whichever instance', async () => {
    const [gate, done] = [new Gate(), [] as string[]];
    const apps = [await instance(gate, done), await instance(gate, done)];
    const buyers = ['Ada', 'Ben', 'Cleo', 'Dora', 'Emil'];
    const calls = [];
    for (const [i, buyer] of buyers.entries()) {
      calls.push(shiftOf(apps[[0, 1, 1, 0, 1][i]!]!).sellTicket(buyer));
      if (i === 0) await eventually(() => gate.arrived === 1);
      else await queued(i, 'tickets-locks');
    }
    gate.open();
    await Promise.all(calls);
    expect(done).toEqual(buyers.map((buyer) => `ticket for ${buyer}`));
  });
});
