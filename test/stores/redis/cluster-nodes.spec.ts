import { Cluster, type ClusterOptions } from 'ioredis';
import type { LeaseDriver, LockStore } from 'nestjs-distributed-lock/core';
import type { RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { eventually } from '../../support/eventually.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { endOf, loadScripts, outcomeOf, shaOf, SLACK, useRedis } from './setting.js';

const SLOTS = 16_384;
const patient = { keyTimeout: 10_000, waitTimeout: 15_000 };
const setting = useRedis(); // for its locks and its cleaning up; the server is no part of the Cluster
let one: RedisServer;
let other: RedisServer;
/** Keys that are on one node, and on the other. */
let onOne: string[];
let onOther: string[];

beforeAll(async () => {
  const args = ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1', '--cluster-node-timeout', '60000'];
  [one, other] = await Promise.all([startRedis({ port: 'free', args }), startRedis({ port: 'free', args })]);
  const [first, second] = [one.client(), other.client()];
  const slots = Array.from({ length: SLOTS }, (_, slot) => slot);
  await first.cluster('ADDSLOTS', ...slots.slice(0, SLOTS / 2));
  await second.cluster('ADDSLOTS', ...slots.slice(SLOTS / 2));
  await second.cluster('MEET', '127.0.0.1', one.port!);
  for (const node of [first, second]) {
    await eventually(async () => /cluster_state:ok[^]*cluster_slots_assigned:16384/.test(await node.cluster('INFO')), { within: 20_000 });
    await loadScripts(node);
  }
  const keys = Array.from({ length: 40 }, (_, i) => `key:${i}`);
  const isFirst = await Promise.all(keys.map(async (key) => (await first.cluster('KEYSLOT', key)) < SLOTS / 2));
  onOne = keys.filter((_, i) => isFirst[i]).slice(0, 10);
  onOther = keys.filter((_, i) => !isFirst[i]).slice(0, 10);
  first.disconnect();
  second.disconnect();
}, 60_000);
afterAll(() => Promise.all([one.stop(), other.stop()]));

/** How often scripts were asked for. */
async function requests(): Promise<number> {
  const stats = await Promise.all(
    [one, other].map(async (node) => {
      const client = node.client();
      return client.info('commandstats').finally(() => client.disconnect());
    }),
  );
  return stats.reduce((sum, text) => sum + Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(text)?.[1] ?? 0), 0);
}

const FORMS: Record<string, (options?: ClusterOptions) => RedisStoreOptions> = {
  own: (clusterOptions) => ({ cluster: [one.connection as { port: number }], clusterOptions }),
  borrowed: (clusterOptions) => {
    const client = new Cluster([one.connection as { port: number }], clusterOptions);
    setting.finally(() => client.disconnect());
    return { client };
  },
};

describe.each(Object.entries(FORMS))("one node of two, with a store's %s client,", (_, form) => {
  it('that hangs costs no lease at the other, and its own are renewed when it is back in time (G4)', async () => {
    const locks = setting.locks(form());
    const [here, there] = await Promise.all(
      [onOne, onOther].map((keys) => Promise.all(keys.map((key) => locks.acquire(key, { ...patient, keyTimeout: 3_000 })))),
    );
    await one.pause();
    setting.finally(() => one.resume());
    // One and a third of a lease: who counted the node's silence against the others has lost them.
    await eventually(() => here!.every((lease) => lease.signal.aborted), { within: 3_000 + SLACK });
    for (const lease of there!) lease.assertHeld();
    expect(await Promise.all(there!.map((lease) => lease.release()))).not.toContain(false);
    await one.resume();
    const { value, took } = await outcomeOf(locks.acquire(onOne[0]!, patient));
    expect(took).toBeLessThan(1_000 + 3_000 + SLACK);
    expect(await value!.release()).toBe(true);
  });

  it.each<[string, string | undefined, (store: LockStore) => LeaseDriver]>([
    ['mutexes', undefined, ({ mutex }) => mutex],
    ['mutexes with a keyPrefix', 'app:', ({ mutex }) => mutex],
    ['semaphores', undefined, ({ semaphore }) => semaphore!],
  ])('has its %s renewed in one request for all slots, and each has its own answer (G4)', async (_what, keyPrefix, driverOf) => {
    const { store } = setting.locks(form({ keyPrefix }));
    const driver = driverOf(store);
    const keys = [...onOne, ...onOther];
    const share = driver.isShared ? ({ count: 1, permits: 1, rank: 0 } as const) : undefined;
    const request = { owner: 'me', ttl: 5_000, tokens: 1, queue: false, share };
    for (const key of keys) expect(await driver.acquire({ ...request, key })).toMatchObject({ granted: true });
    // Both nodes know the script afterwards.
    await Promise.all(driver.renew(keys.map((key) => ({ key, owner: 'me', ttl: 5_000 }))));
    const [gone, taken] = [onOne[3]!, onOther[5]!];
    for (const key of [gone, taken]) await driver.release({ key, owner: 'me', keepFor: 0 });
    await driver.acquire({ ...request, key: taken, owner: 'other' });
    const before = await requests();
    const replies = await Promise.all(driver.renew(keys.map((key) => ({ key, owner: 'me', ttl: 60_000 }))));
    // One for each node, and for each that is lost; at times the fences are renewed too.
    expect([4, 6]).toContain((await requests()) - before);
    expect(replies).toEqual(keys.map((key) => (key === gone || key === taken ? 'lost' : 'renewed')));
    for (const key of keys) {
      const { remaining } = await driver.check({ key, owner: 'me' });
      if (key === gone) continue;
      if (key === taken) expect(remaining).toBeLessThanOrEqual(5_000);
      else expect(remaining).toBeGreaterThan(50_000);
    }
    for (const key of keys) await Promise.all(['me', 'other'].map((owner) => driver.release({ key, owner, keepFor: 0 })));
  });

  it.each(['acquire', 'renew', 'release'] as const)(
    'whose connection breaks before the reply to an applied %s: no double grant and no false loss (G6, G10)',
    async (verb) => {
      const proxy = await setting.proxy(one.connection);
      const locks = setting.locks(
        form({ natMap: { [`127.0.0.1:${one.port}`]: proxy.connection, [`127.0.0.1:${other.port}`]: other.connection as never } }),
      );
      const lost = jest.fn();
      locks.on('lost', lost);
      for (const key of [onOne[0]!, onOther[0]!]) await locks.using(key, () => undefined, patient);
      const loss = proxy.dropReplyTo(shaOf(verb));
      const key = onOne[1]!;
      const result = await locks.using(
        key,
        async (lease) => {
          if (verb === 'acquire') expect(await setting.locks(form()).tryAcquire(key)).toBeNull();
          const end = endOf(lease);
          if (verb === 'renew') await eventually(() => endOf(lease) > end + 100);
          return 'result';
        },
        { ...patient, keyTimeout: 3_000 },
      );
      expect(result).toBe('result');
      expect(loss.lost).toBe(1);
      expect(lost).not.toHaveBeenCalled();
      expect(await (await setting.locks(form()).acquire(key, patient)).release()).toBe(true);
    },
  );
});
