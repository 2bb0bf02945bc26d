import type { NodeRedisClient } from 'nestjs-distributed-lock/redis';
import { eventually } from '../../../support/eventually.js';
import { nodeRedis } from '../../../support/redis-clients.js';
import { startSentinel } from '../../../support/redis-sentinel.js';
import { startRedis, type RedisServer } from '../../../support/redis-server.js';
import { usesEveryVerb } from '../every-verb.js';
import { useRedis } from '../setting.js';
import { expectWoken, subscribers, woken } from '../waiting.js';

const KEY = 'order:42';
/** On a busy machine it takes a while to ask the sentinel, and then to connect. */
const calm = { requestTimeout: 5_000 };
const patient = { ...woken, retryInterval: 200 };
const setting = useRedis({ port: 'free' });

describe('a sentinel of node-redis that is lent to a store', () => {
  let sentinel: RedisServer;
  beforeEach(async () => {
    sentinel = await startSentinel({ name: 'locks', master: setting.server, downAfter: 60_000 });
    setting.finally(() => sentinel.stop());
    // It prints why it looks for another master.
    const log = jest.spyOn(console, 'log').mockImplementation();
    setting.finally(() => log.mockRestore());
  });

  async function lent(isConnected = true): Promise<NodeRedisClient> {
    const root = sentinel.connection as { host: string; port: number };
    const client = nodeRedis.createSentinel({
      name: 'locks',
      sentinelRootNodes: [root],
      nodeClientOptions: { socket: { connectTimeout: 500 } },
    });
    client.on('error', () => undefined);
    setting.finally(() => client.isOpen && client.destroy());
    if (isConnected) await client.connect();
    return client;
  }

  it('grants, excludes, queues, renews, releases and wakes, connected or not, and is left without a listener (G7, G8)', async () => {
    const client = (await lent()) as NodeRedisClient & NodeJS.EventEmitter;
    const before = client.listenerCount('error');
    const locks = setting.locks({ client, ...calm });
    await usesEveryVerb(locks, setting.locks({ client: await lent(false), ...calm }), KEY);
    await expectWoken(setting, setting.locks({ client: await lent(), ...calm }), setting.locks({ client: await lent(), ...calm }), 'other');
    await locks.close();
    expect(client.listenerCount('error')).toBe(before);
    expect(client.isOpen).toBe(true);
  });

  it('follows the master, and its waiters are woken there (G8)', async () => {
    const replica = await startRedis({ port: 'free', args: ['--repl-diskless-sync-delay', '0'] });
    setting.finally(() => replica.stop());
    const redis = replica.client();
    await redis.replicaof('127.0.0.1', setting.server.port!);
    await eventually(async () => expect(await redis.info('replication')).toMatch(/master_link_status:up/));
    const watch = sentinel.client();
    await watch.call('SENTINEL', 'SET', 'locks', 'down-after-milliseconds', 500);
    await eventually(async () => expect(await watch.info('sentinel')).toMatch(/slaves=1/));

    const [holder, waiter] = [setting.locks({ client: await lent() }), setting.locks({ client: await lent() })];
    const lease = await holder.acquire(KEY, { ...woken });
    const waiting = waiter.acquire(KEY, { ...woken, retryInterval: 500 });
    await eventually(async () => (await redis.zcard(`{${KEY}}:queue`)) === 1);
    setting.finally(() => setting.server.restart());
    await setting.server.kill();
    await eventually(async () => expect((await redis.role())[0]).toBe('master'));
    await eventually(async () => (await subscribers({ ...setting, redis })) === 1);
    lease.assertHeld();
    await holder.using('later', () => undefined, patient);
    expect(await lease.release()).toBe(true);
    const next = await waiting;
    expect(await redis.get(KEY)).toBe(next.owner);
    await next.release();
    expect(await waiter.using('new', () => 'result', patient)).toBe('result');
  });
});
