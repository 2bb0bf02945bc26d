import { Controller, Get, Inject, Injectable } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import type { Server } from 'node:http';
import type { Redis } from 'ioredis';
import { currentLease, DistributedLock, LockExceptionFilter, type Lease } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { boot, listen, type Booted } from './boot.js';
import { Gate } from '../support/gate.js';

const PATIENT = { retryCount: 0, retryInterval: 5, keyTimeout: 60_000 };

@Injectable()
class Jobs {
  gate = new Gate();
  lease: Lease | undefined;

  @DistributedLock({ value: 'job', ...PATIENT })
  async run() {
    this.lease = currentLease();
    await this.gate.pass();
    return 'done';
  }
  @DistributedLock({ value: 'part', key: (part: string) => part, ...PATIENT })
  async part(part: string, again = false): Promise<string> {
    return again ? `again ${await this.part(part)}` : part;
  }
}

@Controller()
class JobController {
  requests = 0;
  constructor(@Inject(Jobs) private readonly jobs: Jobs) {}

  @Get('run')
  async run() {
    this.requests++;
    return { run: await this.jobs.run() };
  }
  @Get('parts')
  async parts() {
    await this.jobs.gate.pass();
    return { parts: [await this.jobs.part('a'), await this.jobs.part('b', true)] };
  }
}

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
});
beforeEach(() => redis.flushall());
afterAll(() => server.stop());

/** What is left in Redis but fencing tokens. */
const keysLeft = async () => (await redis.keys('*')).filter((key) => !key.endsWith(':fence'));
const connections = async () =>
  String(await redis.client('LIST'))
    .trim()
    .split('\n').length;

describe('a closing app', () => {
  const bootJobs = (options: Partial<Parameters<typeof boot>[1]> = {}, ...providers: (new () => object)[]) =>
    boot(
      { controllers: [JobController], providers: [Jobs, { provide: APP_FILTER, useClass: LockExceptionFilter }, ...providers] },
      { store: redisStore({ options: { ...server.connection } }), ...options },
    );

  /** Runs the job, and a stranger that waits for it; both are under way. */
  async function occupied(booted: Booted) {
    const jobs = booted.get(Jobs);
    const reasonOf = (error: unknown) => error;
    const run = jobs.run().catch(reasonOf);
    await eventually(() => jobs.gate.arrived === 1);
    const waiter = jobs.run().catch(reasonOf);
    return { jobs, run, waiter, gate: jobs.gate };
  }

  it('answers 503 to requests that wait, and lets those in flight end with free keys and nested calls', async () => {
    const booted = await bootJobs();
    const url = await listen(booted.app);
    (booted.app.getHttpServer() as Server).keepAliveTimeout = 10; // a closing server waits for idle connections too
    const ask = async (path: string) => {
      const response = await fetch(`${url}/${path}`);
      return { status: response.status, retryAfter: response.headers.get('retry-after'), body: await response.json() };
    };
    const { gate } = booted.get(Jobs);
    const holding = ask('run');
    const working = ask('parts');
    await eventually(() => gate.arrived === 2);
    let refused: unknown;
    void ask('run').then((answer) => (refused = answer));
    await eventually(() => booted.get(JobController).requests === 2);
    const closing = booted.app.close();
    await eventually(() => refused !== undefined).finally(() => gate.open());
    expect(refused).toMatchObject({ status: 503, retryAfter: expect.any(String), body: { code: 'LOCK_ABORTED' } });
    expect(await working).toMatchObject({ status: 200, body: { parts: ['a', 'again b'] } });
    expect(await holding).toMatchObject({ status: 200, body: { run: 'done' } });
    await closing;
    expect(await keysLeft()).toEqual([]);
  });

  it('waits no longer than shutdownTimeout: then it aborts and releases, and the method learns of it', async () => {
    const booted = await bootJobs({ shutdownTimeout: 100 });
    const { jobs, run, gate } = await occupied(booted);
    const start = performance.now();
    await booted.app.close();
    expect(performance.now() - start).toBeGreaterThanOrEqual(99);
    expect(performance.now() - start).toBeLessThan(8_000); // by default it would be 10 s
    expect(jobs.lease?.signal.aborted).toBe(true);
    expect(() => jobs.lease?.assertHeld()).toThrow();
    expect(await keysLeft()).toEqual([]);
    gate.open();
    expect(await run).toMatchObject({ name: 'LockLostError', result: 'done' });
  });

  it('quits the client that it made', async () => {
    const before = await connections();
    const booted = await bootJobs();
    await booted.get(Jobs).part('a');
    expect(await connections()).toBeGreaterThan(before);
    await booted.app.close();
    await eventually(async () => (await connections()) === before);
  });

  it('leaves a borrowed client open and usable', async () => {
    const client = server.client();
    const booted = await bootJobs({ store: redisStore({ client }) });
    const { run, gate, waiter } = await occupied(booted);
    const closing = booted.app.close();
    await waiter;
    gate.open();
    await Promise.all([run, closing]);
    expect(client.status).toBe('ready');
    expect(await client.set('mine', '1')).toBe('OK');
    const next = await bootJobs({ store: redisStore({ client }) });
    expect(await next.get(Jobs).part('a')).toBe('a');
    for (const event of ['ready', 'close', 'end', 'error']) expect(client.listenerCount(event)).toBeLessThan(5);
  });
});
