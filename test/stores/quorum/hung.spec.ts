import type { AcquireReply, LeaseDriver, Tenancy } from 'nestjs-distributed-lock/core';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { queueLockOf } from '../../../lib/stores/quorum/quorum.queue-lock.js';
import { eventually, staysTrue } from '../../support/eventually.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { long, patient, useQuorum } from './setting.js';

const setting = useQuorum(3);

describe('a member that hangs', () => {
  const REQUEST_TIMEOUT = 500;
  const owner = 'waiter';
  const request = { owner, ttl: 60_000, tokens: 1, queue: true };
  const release = { owner, keepFor: 0 };

  let key: string;
  let mutex: LeaseDriver;
  let proxies: TcpProxy[];
  beforeEach(async () => {
    key = setting.newKey();
    proxies = await setting.proxies();
    const stores = proxies.map(({ connection }) => redisStore({ options: connection, requestTimeout: REQUEST_TIMEOUT }));
    const store = quorumStore(stores, { quarantine: 0, memberTimeout: 200 });
    setting.finally(() => store.close());
    ({ mutex } = store);
    await mutex.wakeUps!.open(() => undefined);
    // The servers know the scripts then.
    const first = { key, owner: 'first' };
    await acquired(first);
    await released(first);
    for (const index of setting.servers.keys()) {
      await eventually(async () =>
        expect([await leftAt(index, `{${key}}:fence`), await leftAt(index)]).toEqual([
          [expect.any(String), []],
          [null, []],
        ]),
      );
    }
  });

  /** Asks until enough members have answered in time, as a caller of the store does: the machine may be busy. */
  const acquired = (tenancy: Tenancy): Promise<AcquireReply> => eventually(() => mutex.acquire({ ...request, ...tenancy }));

  async function released(tenancy: Tenancy): Promise<void> {
    const words = ['released'];
    const repeat = (error: unknown): never => {
      words.push('lost');
      throw error;
    };
    const word = await eventually(() => mutex.release({ ...release, ...tenancy }).catch(repeat));
    expect(words).toContain(word);
  }

  /** A key and its queue at a server. */
  async function leftAt(index: number, name = key): Promise<unknown[]> {
    const client = setting.servers[index]!.client();
    try {
      return [await client.get(name), await client.zrange(`{${name}}:queue`, '0', '-1')];
    } finally {
      client.disconnect();
    }
  }

  async function holdAt(index: number, name = key): Promise<void> {
    const client = setting.servers[index]!.client();
    await client.set(name, 'other', 'PX', 60_000);
    client.disconnect();
  }

  /** The work is done while a server hangs, with requests that it has not read; it cannot be reached for a while. */
  async function whileHangs(index: number, work: () => Promise<unknown>): Promise<void> {
    const server = setting.servers[index]!;
    const proxy = proxies[index]!;
    const client = server.client();
    await client.config('RESETSTAT');
    setting.finally(() => server.resume());
    await server.pause();
    await work();
    proxy.refuse();
    proxy.cut();
    // The requests that follow have no answer either.
    await staysTrue(() => proxy.connections === 0, 3 * REQUEST_TIMEOUT);
    await server.resume();
    await eventually(async () => expect(await client.info('commandstats')).toContain('cmdstat_evalsha:'));
    client.disconnect();
    await proxy.heal();
  }

  async function holdElsewhere(hung: number): Promise<void> {
    for (const [index, server] of setting.servers.entries()) {
      if (index === hung) continue;
      const store = setting.store(server);
      setting.finally(() => store.close());
      await store.mutex.acquire({ ...request, key, owner: 'holder' });
    }
  }

  describe.each([
    ['is free', async () => undefined, null],
    ['is held', () => holdAt(2), 'other'],
  ])('a member hangs, at which the key %s: it has forgotten nothing when it goes on, and learns (G6, G7)', (_, prepare, value) => {
    beforeEach(prepare);

    it('that the lease was released', async () => {
      const stop = mutex.wakeUps!.listen(owner, () => undefined);
      await whileHangs(2, async () => {
        expect(await acquired({ owner, key })).toMatchObject({ granted: true });
        stop();
        await released({ owner, key });
      });
      await eventually(async () => expect(await leftAt(2)).toEqual([value, []]));
    });

    it('that the holder waits no more', async () => {
      const stop = mutex.wakeUps!.listen(owner, () => undefined);
      await whileHangs(2, async () => {
        expect(await acquired({ owner, key })).toMatchObject({ granted: true });
        stop();
      });
      await eventually(async () => expect(await leftAt(2)).toEqual([value ?? owner, []]));
      await released({ owner, key });
      await eventually(async () => expect(await leftAt(2)).toEqual([value, []]));
    });

    it('that the waiter left', async () => {
      await holdElsewhere(2);
      const stop = mutex.wakeUps!.listen(owner, () => undefined);
      await whileHangs(2, async () => {
        expect(await acquired({ owner, key })).toMatchObject({ granted: false });
        await eventually(() => mutex.leave({ owner, key }));
        stop();
      });
      await eventually(async () => expect(await leftAt(2)).toEqual([value, []]));
    });
  });

  it('a member hangs while many leases are released: with its next answer all of them are sent again (G7)', async () => {
    const keys = Array.from({ length: 30 }, setting.newKey);
    await whileHangs(2, () =>
      Promise.all(
        keys.map(async (each) => {
          const tenancy = { key: each, owner: `waiter for ${each}` };
          expect(await acquired(tenancy)).toMatchObject({ granted: true });
          await released(tenancy);
        }),
      ),
    );
    const allLeft = (): Promise<unknown[]> => Promise.all(keys.map((each) => leftAt(2, each)));
    await eventually(async () => expect(await allLeft()).toEqual(keys.map(() => [null, []])));
  });

  it('a member hangs, at which a waiter asked for the queue lock: it learns that the waiter has left (G7)', async () => {
    const lock = queueLockOf({ key, owner }).key;
    await holdElsewhere(0);
    await holdAt(0, lock);
    const stop = mutex.wakeUps!.listen(owner, () => undefined);
    await whileHangs(0, async () => {
      expect(await acquired({ owner, key })).toMatchObject({ granted: false });
      await eventually(() => mutex.leave({ owner, key }));
      stop();
    });
    await eventually(async () => expect(await leftAt(0, lock)).toEqual(['other', []]));
  });
});

/** For one that takes a member for dead. */
const hasty = { ...patient, memberTimeout: 300 };

/** How many wait at a member. */
async function queuedAt(index: number, key: string): Promise<number> {
  const client = setting.servers[index]!.client();
  return client.zcard(`{${key}}:queue`).finally(() => client.disconnect());
}

it('two that wait at the heads of different members, since one took a member for dead, both get the key while the third member hangs (G8)', async () => {
  const [, , third] = setting.servers;
  const proxies = await setting.proxies();
  const [holder, other, one] = [setting.open(), setting.open(), setting.open(hasty, proxies.map(setting.store))];
  for (const locks of [holder, one, other]) await locks.using('warm-up', () => undefined, long);
  const key = setting.newKey();
  const lease = await holder.acquire(key, long);
  proxies[0]!.blackhole();
  const waits = [one.acquire(key, long)];
  await eventually(async () => (await queuedAt(1, key)) === 1 && (await queuedAt(0, key)) === 0);
  waits.push(other.acquire(key, long));
  await eventually(async () => (await queuedAt(0, key)) === 1 && (await queuedAt(1, key)) === 2);
  await third!.pause();
  setting.finally(() => third!.resume());
  await proxies[0]!.heal();
  await eventually(async () => (await queuedAt(0, key)) === 2);
  expect(await lease.release()).toBe(true);
  await Promise.all(waits.map(async (wait) => (await wait).release()));
});
