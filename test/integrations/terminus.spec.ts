import { LockConfigError } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { LockHealthIndicator } from 'nestjs-distributed-lock/terminus';
import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { HealthModule } from './health-controller.js';
import { ADAPTERS, serve } from './http-app.js';

/** What the controller gives the store to answer. */
const WITHIN = 500;
/** Milliseconds that a busy machine needs for a request over HTTP. */
const SLACK = 1_000;

let server: RedisServer;
beforeAll(async () => void (server = await startRedis()));
afterAll(() => server.stop());

const healthOf = (body: unknown) => (body as { details: { locks: Record<string, unknown> } }).details.locks;

describe.each(ADAPTERS)('a health check on %s', (adapter) => {
  const open = async () => {
    const store = redisStore({ options: { disconnectTimeout: 100, ...server.connection }, requestTimeout: 2_000 });
    const served = await serve(adapter, { imports: [HealthModule] }, { store });
    const ready = async () => {
      const start = performance.now();
      const { status, body } = await served.ask('health/ready');
      return { status, took: performance.now() - start, locks: healthOf(body) };
    };
    await eventually(async () => (await ready()).status === 200);
    return { ...served, ready };
  };

  it('is up and shows what this process holds and waits for, and no key', async () => {
    const { ready, locks, ask } = await open();
    expect(await ready()).toMatchObject({
      status: 200,
      locks: { status: 'up', roundTrip: expect.any(Number), wakeUps: true, held: 0, waiting: 0, oldestWait: 0 },
    });
    const lease = await locks.acquire('customer:42');
    const wait = locks.acquire('customer:42', { waitTimeout: 10_000 });
    await eventually(async () => ((await ready()).locks.oldestWait as number) > 0);
    const { text } = await ask('health/ready');
    expect((await ready()).locks).toMatchObject({ held: 1, waiting: 1 });
    expect(text).not.toContain('customer');
    expect(text).not.toContain(lease.owner);
    await lease.release();
    await (await wait).release();
  });

  it('is down within its time while Redis is stopped, and up within a second of its return', async () => {
    const { ready } = await open();
    await server.kill();
    const { status, took, locks } = await ready();
    await server.restart();
    const start = performance.now();
    expect(status).toBe(503);
    expect(took).toBeLessThan(WITHIN + SLACK);
    expect(locks).toMatchObject({
      status: 'down',
      message: expect.stringMatching(/^The store did not answer within 500 ms|^The connection/),
    });
    expect(locks).not.toHaveProperty('roundTrip');
    await eventually(async () => (await ready()).status === 200, { within: 1_000 + SLACK });
    expect(performance.now() - start).toBeLessThan(1_000 + SLACK);
  });

  it('is down within its time while Redis is silent', async () => {
    const { ready } = await open();
    await server.pause();
    const { status, took } = await ready();
    await server.resume();
    expect(status).toBe(503);
    expect(took).toBeLessThan(WITHIN + SLACK);
  });

  it('is up and degraded while the connection of the subscriber is broken, and healed when it is back', async () => {
    const admin = server.client();
    const { ready, locks } = await open();
    const holder = await locks.acquire('key');
    const elsewhere = await open();
    const wait = elsewhere.locks.acquire('key', { waitTimeout: 30_000 });
    const subscribers = async () => String(await admin.call('CLIENT', 'LIST', 'TYPE', 'pubsub')).includes('id=');
    await eventually(async () => (await subscribers()) && (await elsewhere.ready()).locks.wakeUps === true);
    const polls = async () => ((await elsewhere.ready()).locks.degraded as string[] | undefined)?.includes('waiters poll') ?? false;
    expect(await polls()).toBe(false);
    // It reconnects within 50 ms, and so it is refused as well.
    await admin.acl('SETUSER', 'default', 'resetchannels');
    await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(polls);
    expect(await elsewhere.ready()).toMatchObject({ status: 200, locks: { status: 'up', wakeUps: false } });
    expect((await ready()).locks).toMatchObject({ wakeUps: true });
    await admin.acl('SETUSER', 'default', 'allchannels');
    await holder.release();
    await (await wait).release();
  });

  it('is up and degraded after the event loop was blocked', async () => {
    const { ready, locks } = await open();
    const lease = await locks.acquire('key', { keyTimeout: 3_000 });
    const end = performance.now() + 1_300;
    while (performance.now() < end);
    await eventually(async () =>
      ((await ready()).locks.degraded as string[] | undefined)?.includes('the event loop was blocked within the last minute'),
    );
    await lease.release();
  });

  it('refuses a wrong option and an unknown store', async () => {
    const { get } = await open();
    const indicator = get(LockHealthIndicator);
    await expect(indicator.isHealthy('locks', { within: 0 })).rejects.toThrow(/"within" must be a whole number of at least 1/);
    await expect(indicator.isHealthy('locks', { store: 'other' })).rejects.toThrow(LockConfigError);
    expect(await indicator.isHealthy('stock', { store: 'default' })).toMatchObject({ stock: { status: 'up' } });
  });
});
