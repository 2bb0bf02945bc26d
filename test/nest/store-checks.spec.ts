import { Logger, Module, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DistributedLockModule, Locks, type DistributedLockModuleOptions } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';

let server: RedisServer;
beforeAll(async () => void (server = await startRedis()));
afterAll(() => server.stop());

const apps: INestApplicationContext[] = [];
afterEach(() => Promise.all(apps.splice(0).map((app) => app.close())));

/** As `main.ts` starts it; what it logs goes to Nest's logger. */
async function start(...stores: DistributedLockModuleOptions[]) {
  const lines: string[] = [];
  const write =
    (level: string) =>
    (message: string, context: string): void => {
      if (context === 'DistributedLock') lines.push(`${level} ${message}`);
    };
  const logger = { log: write('log'), warn: write('warn'), error: write('error') };
  class AppModule {}
  Module({ imports: stores.map((store) => DistributedLockModule.forRoot(store)) })(AppModule);
  const begin = performance.now();
  const starting = NestFactory.createApplicationContext(AppModule, { logger, abortOnError: false });
  const error = await starting.then(
    (app) => void apps.push(app),
    (cause: unknown) => cause,
  );
  Logger.overrideLogger(logger);
  return { lines, error, took: performance.now() - begin, locks: () => apps[0]!.get(Locks) };
}
const here = () => redisStore({ options: server.connection });
const nowhere = async (requestTimeout = 1000) => redisStore({ url: `redis://127.0.0.1:${await freePort()}`, requestTimeout });

describe('an app that starts', () => {
  it('logs one line for each store', async () => {
    const { lines } = await start({ store: here() }, { name: 'local', store: memoryStore() });
    await eventually(() => lines.length === 2);
    expect(lines.sort()).toEqual([
      expect.stringMatching(/^log (Redis|Valkey) [\d.]+ answers in \d+ ms; waiters are woken$/),
      expect.stringMatching(/^log Store "local": The memory store answers in \d+ ms; waiters are woken$/),
    ]);
  });

  it('does not wait for a store that is away, and logs it once', async () => {
    const { lines, error, took, locks } = await start({ store: await nowhere(5000) });
    expect(error).toBeUndefined();
    expect(took).toBeLessThan(2500);
    await locks().close();
    expect(lines).toEqual([]);
  });

  it('logs why a store cannot be reached', async () => {
    const { lines } = await start({ store: await nowhere(200) });
    await eventually(() => lines.length > 0);
    expect(lines).toEqual([
      expect.stringMatching(
        /^warn Redis cannot be reached: Redis is not connected within 200 ms \(connect ECONNREFUSED .+\); locks wait until it answers$/,
      ),
    ]);
  });

  it('does not start with failFast while a store is away, and leaves no connection behind', async () => {
    const store = await nowhere(300);
    const close = jest.spyOn(store, 'close');
    const { lines, error, took } = await start({ store, failFast: true });
    expect(close).toHaveBeenCalled();
    expect(error).toMatchObject({ name: 'StoreError', transient: true });
    expect(took).toBeLessThan(300 + 1500);
    expect(lines).toEqual([expect.stringMatching(/^warn Redis cannot be reached: /)]);
  });

  it('does not start with failFast and a wrong password', async () => {
    const store = redisStore({ options: { ...server.connection, username: 'nobody', password: 'wrong' } });
    const { lines, error } = await start({ store, failFast: true });
    expect(error).toMatchObject({ name: 'StoreError', transient: false, message: expect.stringContaining('WRONGPASS') });
    expect(lines).toEqual([expect.stringMatching(/^warn Redis refuses this app: Redis: WRONGPASS /)]);
  });

  it('starts with failFast when all stores answer', async () => {
    const { lines, error } = await start({ store: here(), failFast: true });
    expect(error).toBeUndefined();
    expect(lines).toHaveLength(1);
  });
});
