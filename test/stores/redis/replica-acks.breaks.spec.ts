import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { eventually } from '../../support/eventually.js';
import { useRedis } from './setting.js';

const KEY = 'order:42';
const AT_ONCE = ['--repl-diskless-sync-delay', '0'];
const setting = useRedis({ port: 'free', args: AT_ONCE });
let replica: RedisServer;

beforeAll(async () => {
  replica = await startRedis({ port: 'free', args: AT_ONCE });
  const redis = replica.client();
  await redis.replicaof('127.0.0.1', setting.server.port!);
  await eventually(async () => /master_link_status:up/.test(await redis.info('replication')));
  await eventually(async () => /slave0:.*state=online/.test(await setting.redis.info('replication')));
  redis.disconnect();
});
afterAll(() => replica.stop());

// ioredis drops the commands of a broken connection and never settles their promises.
it('a store with replicaAcks takes locks again after its connection broke before a reply', async () => {
  const proxy = await setting.proxy();
  const locks = setting.own(proxy.connection, { replicaAcks: 1, requestTimeout: 30_000 });
  await locks.using('warm-up', () => undefined);
  proxy.dropReplies();
  const call = locks.acquire(KEY, { keyTimeout: 60_000, waitTimeout: 0 });
  await eventually(() => proxy.lost.replies >= 2);
  await proxy.heal(); // it resets what has lost replies
  await expect(call).rejects.toMatchObject({ code: 'LOCK_STORE', transient: true });
  const lease = await locks.acquire(`${KEY}0`, { keyTimeout: 60_000, waitTimeout: 60_000, retryInterval: 60_000 });
  expect(await lease.release()).toBe(true);
});
