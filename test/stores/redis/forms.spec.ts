import { type RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { freePort } from '../../support/free-port.js';
import type { RedisServer } from '../../support/redis-server.js';
import { startSentinel } from '../../support/redis-sentinel.js';
import { usesEveryVerb } from './every-verb.js';
import { HEAD_START, SLACK, outcomeOf, useRedis } from './setting.js';

const KEY = 'order:42';
const patient = { keyTimeout: 10_000, waitTimeout: 15_000 };
const setting = useRedis({ port: 'free' });
let sentinel: RedisServer;

beforeAll(async () => {
  sentinel = await startSentinel({ name: 'main', master: setting.server });
});
afterAll(() => sentinel.stop());

const sentinels = () => [{ host: '127.0.0.1', port: sentinel.port! }];

// A Cluster has a file of its own: cluster.spec.ts.
const FORMS: [string, () => RedisStoreOptions][] = [
  ['url', () => ({ url: `redis://127.0.0.1:${setting.server.port}` })],
  ['url with a db', () => ({ url: `redis://127.0.0.1:${setting.server.port}/5` })],
  ['options', () => ({ options: { host: '127.0.0.1', port: setting.server.port } })],
  ['client', () => ({ client: setting.client() })],
  ['sentinels', () => ({ sentinels: sentinels(), name: 'main' })],
  ['sentinels, with options', () => ({ sentinels: sentinels(), name: 'main', options: { db: 2 } })],
];

describe.each(FORMS)('a store made with %s', (_, form) => {
  it('grants, excludes, queues, renews and releases', async () => {
    await usesEveryVerb(setting.locks(form()), setting.locks(form()), KEY);
  });
});

describe('a store made with sentinels', () => {
  it('is not held up by one that accepts connections and answers nothing, and is used within a few requestTimeouts', async () => {
    const hung = await startSentinel({ name: 'main', master: setting.server });
    setting.finally(() => hung.stop());
    await hung.pause();
    const both = [{ host: '127.0.0.1', port: hung.port! }, ...sentinels()];
    const locks = setting.overIoredis({ sentinels: both, name: 'main', requestTimeout: 500 });
    const { value, took } = await outcomeOf(locks.acquire(KEY, patient));
    expect(took).toBeLessThan(2 * 500 + SLACK);
    expect(await value!.release()).toBe(true);
  });
});

describe('requestTimeout', () => {
  it.each<['own' | 'borrowed', number]>([
    ['own', 200],
    ['own', 1_500],
    ['borrowed', 200],
  ])('is how long a single request over the %s client may take, such as %d ms (G9)', async (whose, requestTimeout) => {
    const { connection } = setting.server;
    const locks =
      whose === 'own' ? setting.overIoredis({ options: connection, requestTimeout }) : setting.borrowed(connection, { requestTimeout });
    expect(locks.store.requestTimeout).toBe(requestTimeout);
    await locks.using(KEY, () => undefined, patient);
    await setting.server.pause();
    setting.finally(() => setting.server.resume());
    const { error, took } = await outcomeOf(locks.tryAcquire(KEY));
    await setting.server.resume();
    expect(error).toMatchObject({ name: 'StoreError', transient: true });
    expect(took).toBeGreaterThan(requestTimeout - HEAD_START);
    expect(took).toBeLessThan(requestTimeout + SLACK);
  });

  it('is also how long connecting may take', async () => {
    const locks = setting.own({ host: '127.0.0.1', port: await freePort() }, { requestTimeout: 200 });
    const { error, took } = await outcomeOf(locks.tryAcquire(KEY));
    expect(error).toMatchObject({ name: 'StoreError', transient: true, message: expect.stringContaining('not connected') });
    expect(took).toBeLessThan(200 + SLACK);
  });
});
