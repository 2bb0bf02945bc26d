// What docs/health.md says, over HTTP and on a real server.
import { LockConfigError } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { LockHealthIndicator } from 'nestjs-distributed-lock/terminus';
import { ADAPTERS, serve, type Adapter } from '../integrations/http-app.js';
import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { HealthModule } from './health-controller.js';

let server: RedisServer;
beforeAll(async () => void (server = await startRedis()));
afterAll(() => server.stop());

interface Health {
  wakeUps: boolean;
  oldestWait: number;
  degraded?: string[];
}

async function open(adapter: Adapter = 'express') {
  // The health controller sets a time limit of its own: with that of the store, the tests would not end.
  const store = redisStore({ options: server.connection, requestTimeout: 600_000 });
  const served = await serve(adapter, { imports: [HealthModule] }, { store });
  const ready = async () => {
    const { status, body, text } = await served.ask('health/ready');
    return { status, text, locks: (body as { details: { locks: Health } }).details.locks };
  };
  const isUp = () => eventually(async () => (await ready()).status === 200);
  await isUp();
  return { ...served, ready, isUp };
}

it.each(ADAPTERS)('is up and shows what this process holds and waits for, and no key (%s)', async (adapter) => {
  const { ready, locks } = await open(adapter);
  const idle = { status: 'up', roundTrip: expect.any(Number), wakeUps: true, held: 0, waiting: 0, oldestWait: 0 };
  await eventually(async () => expect((await ready()).locks).toMatchObject(idle));
  const lease = await locks.acquire('customer:42', { keyTimeout: 60_000 });
  const wait = locks.acquire('customer:42', { waitTimeout: Infinity });
  const { text } = await eventually(async () => {
    const answer = await ready();
    expect(answer.locks).toMatchObject({ held: 1, waiting: 1 });
    expect(answer.locks.oldestWait).toBeGreaterThan(0);
    return answer;
  });
  expect(text).not.toContain('customer');
  expect(text).not.toContain(lease.owner);
  await lease.release();
  await (await wait).release();
});

it('is down while Redis is stopped or silent, and up again afterwards', async () => {
  const { ready, isUp } = await open();
  await server.kill();
  const { status, locks } = await ready();
  expect(status).toBe(503);
  expect(locks).toMatchObject({
    status: 'down',
    message: expect.stringMatching(/^The store did not answer within \d+ ms|^The connection/),
  });
  expect(locks).not.toHaveProperty('roundTrip');
  await server.restart();
  await isUp();
  await server.pause();
  expect(await ready()).toMatchObject({ status: 503, locks: { status: 'down' } });
  await server.resume();
  await isUp();
});

it('is up and degraded while the connection of the subscriber is broken', async () => {
  const admin = server.client();
  const { ready, locks } = await open();
  const holder = await locks.acquire('key', { keyTimeout: 60_000 });
  const elsewhere = await open();
  const wait = elsewhere.locks.acquire('key', { waitTimeout: Infinity });
  const subscribers = async () => String(await admin.call('CLIENT', 'LIST', 'TYPE', 'pubsub')).includes('id=');
  await eventually(async () => (await subscribers()) && (await elsewhere.ready()).locks.wakeUps);
  // It reconnects, and so it is refused as well.
  await admin.acl('SETUSER', 'default', 'resetchannels');
  await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await eventually(async () => (await elsewhere.ready()).locks.degraded?.includes('waiters poll') ?? false);
  await eventually(async () => expect(await elsewhere.ready()).toMatchObject({ status: 200, locks: { status: 'up', wakeUps: false } }));
  await eventually(async () => expect((await ready()).locks).toMatchObject({ wakeUps: true }));
  await admin.acl('SETUSER', 'default', 'allchannels');
  await holder.release();
  await (await wait).release();
});

it('refuses a wrong option and an unknown store', async () => {
  const indicator = (await open()).get(LockHealthIndicator);
  await expect(indicator.isHealthy('locks', { within: 0 })).rejects.toThrow(/"within" must be a whole number of at least 1/);
  await expect(indicator.isHealthy('locks', { store: 'other' })).rejects.toThrow(LockConfigError);
  expect(await indicator.isHealthy('stock', { store: 'default' })).toMatchObject({ stock: { status: 'up' } });
});
