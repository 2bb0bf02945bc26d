import { Controller, Get, HttpStatus, Inject, Injectable, Logger, Module, type INestApplicationContext } from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import type { Server } from 'node:http';
import type { DistributedLockModuleOptions } from 'nestjs-distributed-lock';
import { DistributedLock, DistributedLockModule, LockExceptionFilter, Locks, LockTimeoutError, StoreError } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { eventually } from '../support/eventually.js';
import { Gate } from '../support/gate.js';
import { useRedis } from '../stores/redis/setting.js';
import { boot, listen } from './boot.js';

const setting = useRedis();

const here = () => redisStore({ options: { ...setting.server.connection } });
const nowhere = (requestTimeout = 2_000) => redisStore({ options: { path: '/nobody/listens/here.sock' }, requestTimeout });

describe('an app that starts', () => {
  const apps: INestApplicationContext[] = [];
  afterEach(() => Promise.all(apps.splice(0).map((app) => app.close())));

  /** As `main.ts` starts it; what it logs goes to Nest's logger. */
  async function start(...stores: DistributedLockModuleOptions[]) {
    const lines: string[] = [];
    const write = (level: string) => (message: string, context: string) => {
      if (context === 'DistributedLock') lines.push(`${level} ${message}`);
    };
    const logger = { log: write('log'), warn: write('warn'), error: write('error') };
    class AppModule {}
    Module({ imports: stores.map((store) => DistributedLockModule.forRoot(store)) })(AppModule);
    const starting = NestFactory.createApplicationContext(AppModule, { logger, abortOnError: false });
    const error = await starting.then(
      (app) => void apps.push(app),
      (cause: unknown) => cause,
    );
    Logger.overrideLogger(logger);
    return { lines, error };
  }

  it('logs one line for each store', async () => {
    const { lines } = await start({ store: here() }, { name: 'local', store: memoryStore() });
    await eventually(() => lines.length === 2);
    expect(lines.sort()).toEqual([
      expect.stringMatching(/^log (Redis|Valkey) [\d.]+ at \S+\/0 answers in \d+ ms; waiters are woken$/),
      expect.stringMatching(/^log Store "local": Memory with locks of this process only answers in \d+ ms; waiters are woken$/),
    ]);
  });

  it('does not wait for a store that is away, and logs nothing of it once its locks are closed', async () => {
    const { lines, error } = await start({ store: nowhere(600_000) });
    expect(error).toBeUndefined();
    await apps[0]!.get(Locks).close();
    expect(lines).toEqual([]);
  });

  it('does not start with failFast while a store is away, and leaves no connection behind', async () => {
    const store = nowhere();
    const close = jest.spyOn(store, 'close');
    const { lines, error } = await start({ store, failFast: true });
    expect(close).toHaveBeenCalled();
    expect(error).toMatchObject({ name: 'StoreError', transient: true });
    expect(lines).toEqual([expect.stringMatching(/^warn Redis cannot be reached: /)]);
  });

  it('does not start with failFast and a wrong password', async () => {
    const store = redisStore({ options: { ...setting.server.connection, username: 'nobody', password: 'wrong' } });
    const { lines, error } = await start({ store, failFast: true });
    expect(error).toMatchObject({ name: 'StoreError', transient: false, message: expect.stringContaining('WRONGPASS') });
    expect(lines).toEqual([expect.stringMatching(/^warn Redis refuses requests: WRONGPASS /)]);
  });

  it('does not start with failFast on a replica, which answers and gives no locks', async () => {
    await setting.redis.replicaof('127.0.0.1', 1);
    setting.finally(() => setting.redis.replicaof('NO', 'ONE'));
    const { lines, error } = await start({ store: here(), failFast: true });
    expect(error).toMatchObject({ name: 'StoreError', isRefusal: true });
    expect(lines).toEqual([expect.stringMatching(/^warn Redis refuses requests: It is a replica: use the address of the master/)]);
  });

  it('starts with failFast when all stores answer', async () => {
    const { lines, error } = await start({ store: here(), failFast: true });
    expect([error, lines.length]).toEqual([undefined, 1]);
  });
});

const PATIENT = { waitTimeout: Infinity, keyTimeout: 60_000 };

@Injectable()
class Jobs {
  readonly gate = new Gate();

  @DistributedLock({ value: 'job', ...PATIENT })
  async run() {
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

it('an app that closes answers 503 to requests that wait, and lets those in flight end with free keys and nested calls', async () => {
  const providers = [Jobs, { provide: APP_FILTER, useClass: LockExceptionFilter }];
  const { app, get } = await boot({ controllers: [JobController], providers }, { store: here() });
  const jobs = get(Jobs);
  const url = await listen(app);
  (app.getHttpServer() as Server).keepAliveTimeout = 10; // a closing server waits for idle connections too
  const ask = async (path: string) => {
    const response = await fetch(`${url}/${path}`);
    return { status: response.status, retryAfter: response.headers.get('retry-after'), body: await response.json() };
  };
  const holding = ask('run');
  const working = ask('parts');
  await eventually(() => jobs.gate.arrived === 2);
  let refused: unknown;
  void ask('run').then((answer) => (refused = answer));
  await eventually(() => get(JobController).requests === 2);
  const closing = app.close();
  await eventually(() => refused !== undefined).finally(() => jobs.gate.open());
  expect(refused).toMatchObject({ status: 503, retryAfter: expect.any(String), body: { code: 'LOCK_ABORTED' } });
  expect(await working).toMatchObject({ status: 200, body: { parts: ['a', 'again b'] } });
  expect(await holding).toMatchObject({ status: 200, body: { run: 'done' } });
  await closing;
  // Fencing tokens stay.
  expect((await setting.redis.keys('*')).filter((key) => !key.endsWith(':fence'))).toEqual([]);
});

@Controller()
class ShopController {
  @Get()
  @DistributedLock({ value: 'stock', waitTimeout: 0 })
  async reduce(): Promise<string> {
    return 'sold';
  }
}

it.each([
  ['a timeout', LockTimeoutError],
  ['an outage', StoreError],
])('an app without the exception filter answers 500 to %s, whose error names class and method', async (_what, type) => {
  const store = memoryStore();
  const { app, locks } = await boot({ controllers: [ShopController] }, { store });
  await locks.acquire('stock-locks', { keyTimeout: 60_000 });
  if (type === StoreError) store.mutex.acquire = () => Promise.reject(new StoreError('The store is away.', { transient: true }));
  const logged: string[] = [];
  app.useLogger({ log() {}, warn() {}, error: (error: Error) => void logged.push(`${error.stack}`) });
  const response = await fetch(await listen(app));
  expect(response.status).toBe(HttpStatus.INTERNAL_SERVER_ERROR);
  expect(logged).toEqual([expect.stringMatching(`^(Error|${type.name}): ShopController\\.reduce: `)]);
});
