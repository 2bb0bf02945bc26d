import { isIoredis } from '../../support/redis-clients.js';
import { eventually } from '../../support/eventually.js';
import { outcomeOf, useRedis } from './setting.js';

const CYCLES = 1_000;
const patient = { keyTimeout: 10_000, waitTimeout: 30_000 };

describe('after 1,000 keys were taken and given back, and others given up', () => {
  const setting = useRedis();

  it('nothing stays at the server but fences that expire by themselves, and two connections at most for each store, one of them its inbox (G7)', async () => {
    const before = (await setting.redis.client('LIST')) as string;
    // Across a connection that breaks an orphan may live for a while (G6), and a machine that stands still must not break these.
    const calm = { requestTimeout: 10_000 };
    const stores = [setting.own(undefined, calm), setting.own(undefined, calm)];
    const holder = await stores[0]!.acquire('taken', patient);

    await Promise.all(
      Array.from({ length: CYCLES }, async (_, i) => {
        const locks = stores[i % 2]!;
        const lease = await locks.acquire(`key:${i}`, { ...patient, fair: i % 3 === 0 });
        expect(await lease.release()).toBe(true);
        if (i % 10 > 0) return;
        const caller = new AbortController();
        const abandoned = [
          outcomeOf(locks.tryAcquire('taken')),
          outcomeOf(locks.acquire('taken', { waitTimeout: 20, fair: i % 20 === 0 })),
          outcomeOf(locks.acquire(`abandoned:${i}`, { ...patient, signal: caller.signal })),
          outcomeOf(locks.acquire('taken', { ...patient, fair: true, signal: caller.signal })),
        ];
        caller.abort();
        await Promise.all(abandoned);
      }),
    );

    const clients = (await setting.redis.client('LIST')) as string;
    expect(clients.trim().split('\n').length).toBeLessThanOrEqual(before.trim().split('\n').length + 2 * stores.length);
    await holder.release();
    await Promise.all(stores.map((locks) => locks.close()));
    const keys = await setting.keys();
    expect(keys.filter((key) => !key.endsWith(':fence'))).toEqual([]);
    expect(keys.length).toBeGreaterThan(CYCLES);
    const ends = (await setting.redis.pipeline(keys.map((key) => ['pttl', key])).exec())!.map(([, ttl]) => Number(ttl));
    expect(Math.min(...ends)).toBeGreaterThan(0);
    const after = (await setting.redis.client('LIST')) as string;
    // A client that is lent is left to its owner.
    const lent = isIoredis ? 0 : stores.length;
    expect(after.trim().split('\n')).toHaveLength(before.trim().split('\n').length + lent);
  });
});

describe('a client that is lent to a store', () => {
  const setting = useRedis();

  it('keeps no listener of it, also where a release is repeated when the locks are closed (G7)', async () => {
    const proxy = await setting.proxy();
    const client = setting.client(proxy.connection);
    await client.ping();
    const listeners = () => ['close', 'ready', 'end', 'error', '-node'].map((event) => client.listenerCount(event));
    const before = listeners();
    const locks = setting.locks({ client, requestTimeout: 100 });
    await locks.acquire('key', { keyTimeout: 5_000 });
    proxy.dropReplies();
    proxy.dropRequests();
    await locks.close();
    expect(await setting.redis.exists('key')).toBe(1);
    await proxy.heal();
    await eventually(async () => (await setting.redis.exists('key')) === 0, { within: 4_000 });
    await eventually(() => expect(listeners()).toEqual(before));
  });
});
