import { StoreError } from 'nestjs-distributed-lock/core';
import { startClusterNode } from '../../support/redis-cluster.js';
import { loadScripts, outcomeOf, useRedis } from './setting.js';

const patient = { keyTimeout: 60_000, waitTimeout: 10_000 };

describe('what is asked of the server in one turn of the event loop', () => {
  const setting = useRedis();

  async function requests(): Promise<number> {
    const stats = await setting.redis.info('commandstats');
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  }

  it('goes out in few requests, none of which holds it up for long, and each gets its own answer (G1, G2)', async () => {
    const locks = setting.own();
    await loadScripts(setting.redis);
    const keys = Array.from({ length: 200 }, (_, i) => `key:${i}`);
    for (const key of keys.filter((_, i) => i % 3 === 0)) await setting.redis.set(key, 'stranger');
    await locks.using('connected', () => undefined);
    const before = await requests();
    const leases = await Promise.all(keys.map((key) => locks.tryAcquire(key, patient)));
    expect((await requests()) - before).toBe(Math.ceil(200 / 64));
    for (const [i, lease] of leases.entries()) {
      expect(lease === null).toBe(i % 3 === 0);
      if (lease) expect(await setting.redis.get(keys[i]!)).toBe(lease.owner);
    }
    const held = leases.filter((lease) => lease !== null);
    expect(await Promise.all(held.map((lease) => lease.release()))).toEqual(Array(133).fill(true));
    expect((await requests()) - before).toBe(Math.ceil(200 / 64) + Math.ceil(133 / 64));
  });

  it('is answered where a server refuses keys of several slots in one request, as a proxy before shards does', async () => {
    const node = await startClusterNode();
    setting.finally(() => node.stop());
    const locks = setting.own(node.connection);
    const keys = Array.from({ length: 20 }, (_, i) => `key:${i}`);
    const leases = await Promise.all(keys.map((key) => locks.acquire(key, patient)));
    await Promise.all(leases.map((lease) => lease.renew()));
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual(keys.map(() => true));
  });

  it('answers each though another one fails (G6)', async () => {
    const locks = setting.own();
    const keys = ['a', 'list', 'b'];
    await setting.redis.rpush('list', 'a', 'value');
    const [a, list, b] = await Promise.all(keys.map((key) => outcomeOf(locks.acquire(key, patient))));
    expect([a!.error, b!.error]).toEqual([undefined, undefined]);
    expect(list!.error).toBeInstanceOf(StoreError);
    expect(list!.error).toMatchObject({ key: 'list', transient: false, message: expect.stringMatching(/^Redis: WRONGTYPE/) });

    const unknown = jest.fn();
    locks.on('unknown', unknown);
    await setting.redis.set('{a}:queue', 'no queue');
    await Promise.all([a!.value!.release(), b!.value!.release()]);
    expect(unknown.mock.calls).toEqual([[expect.objectContaining({ key: 'a', operation: 'release' })]]);
    expect(await setting.redis.get('b')).toBeNull();
  });
});
