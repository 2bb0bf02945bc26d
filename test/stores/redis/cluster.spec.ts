import type { LeaseDriver, LockStore } from 'nestjs-distributed-lock/core';
import { Socket } from 'node:net';
import { askable } from '../../support/askable.js';
import { eventually, staysTrue } from '../../support/eventually.js';
import { type ClusterNode } from '../../support/redis-cluster.js';
import { useCluster } from './cluster.setting.js';
import { usesEveryVerb } from './every-verb.js';
import { loadScripts, shaOf } from './setting.js';
import { expectExclusion, queued, woken } from './waiting.js';

const PREFIXES = [undefined, 'app:', '{app}:'];
const once = { keyTimeout: 300_000, waitTimeout: 0 };
const on = useCluster();
const { setting } = on;
beforeAll(() => on.each((node) => loadScripts(node)));

describe('a store of a Cluster', () => {
  it.each(PREFIXES)(
    'grants, excludes, queues, renews, wakes and releases at each node, with the keyPrefix %p (G2, G4, G8)',
    async (keyPrefix) => {
      const [locks, others] = [on.locks({ clusterOptions: { keyPrefix } }), on.locks({ clusterOptions: { keyPrefix } })];
      // Each needs several names, so there is something for each node.
      for (const key of ['order:42', 'order:{42}', '{order}']) await usesEveryVerb(locks, others, key);
      await expectExclusion([locks, others]);
    },
  );

  it.each(PREFIXES)('shows its keys to operators, and frees them, with the keyPrefix %p', async (keyPrefix) => {
    const [locks, operator] = [on.locks({ clusterOptions: { keyPrefix } }), on.locks({ clusterOptions: { keyPrefix } })];
    const leases = await Promise.all(['order:42', 'order:{43}', 'order:44'].map((key) => locks.acquire(key, woken)));
    const found: string[] = [];
    for await (const { key, holders } of operator.list({ pattern: 'order:*' })) found.push(`${key} ${holders[0]!.owner}`);
    expect(found.sort()).toEqual(leases.map(({ key, owner }) => `${key} ${owner}`).sort());
    await Promise.all(
      leases.map(async ({ key, owner }) => {
        expect(await operator.forceRelease(key, { reason: 'stuck', grace: 0 })).toEqual({ outcome: 'forced', holder: owner });
        expect(await operator.inspect(key)).toMatchObject({ kind: 'free' });
      }),
    );
    for (const lease of leases) expect(await lease.release()).toBe(false);
  });

  it('sends what is asked of a node in one turn of the event loop in one write, and each gets its own answer (G1, G2)', async () => {
    const { masters } = on.cluster;
    const locks = on.locks();
    const keys = masters.slice(0, 2).flatMap((node) => on.cluster.keysOn(node, 50));
    const taken = new Set(keys.filter((_key, i) => i % 5 === 0));
    for (const key of taken) await setting.redis.set(key, 'stranger');
    for (const node of masters) await locks.using(on.cluster.keysOn(node, 1, 'warm-up:')[0]!, () => undefined);
    const ports = masters.slice(0, 2).map(({ port }) => port!);

    const writes = watchWrites();
    setting.finally(writes.stop);
    const leases = await Promise.all(keys.map((key) => locks.tryAcquire(key, once)));
    expect(writes.ports.splice(0).sort()).toEqual(ports.sort());
    expect(leases.map((lease) => lease === null)).toEqual(keys.map((key) => taken.has(key)));
    for (const lease of leases) if (lease) expect(await setting.redis.get(lease.key)).toBe(lease.owner);

    const held = leases.filter((lease) => lease !== null);
    expect(await Promise.all(held.map((lease) => lease.release()))).toEqual(held.map(() => true));
    expect(writes.ports.sort()).toEqual(ports);
  });

  it('that is cut off from one node loses nothing that is under way at another one, and is not taken for away (G9)', async () => {
    const [busy, gone] = on.cluster.masters as [ClusterNode, ClusterNode];
    const [key = '', other = ''] = [busy, gone].map((node) => on.cluster.keysOn(node, 1)[0]);
    const away = jest.fn();
    const [locks, brisk] = [
      on.locks({ requestTimeout: 100_000 }),
      on.locks({ requestTimeout: 2_000 }, { logger: { warn: away, error: away } }),
    ];
    for (const each of [locks, brisk]) for (const name of [key, other]) await each.using(name, () => undefined);
    const resume = (): Promise<unknown> => on.each((client) => client.client('UNPAUSE'), [busy]);
    setting.finally(resume);
    await on.each((client) => client.client('PAUSE', 100_000, 'WRITE'), [busy]);
    const call = locks.tryAcquire(key, once);
    await on.each((client) => client.client('KILL', 'TYPE', 'NORMAL'), [gone]);
    await staysTrue(() => expect(away).not.toHaveBeenCalled(), 3_000);
    await resume();
    await (await call)!.release();
    for (const each of [locks, brisk]) await each.using(other, () => undefined, woken);
  });

  it.each<[string, string | undefined, (store: LockStore) => LeaseDriver]>([
    ['mutexes', undefined, ({ mutex }) => mutex],
    ['mutexes with a keyPrefix', 'app:', ({ mutex }) => mutex],
    ['semaphores', undefined, ({ semaphore }) => semaphore!],
  ])('renews each of its %s by a command of its own, and each has its own answer (G4)', async (_what, keyPrefix, driverOf) => {
    const driver = driverOf(on.locks({ clusterOptions: { keyPrefix } }).store);
    const keys = Array.from({ length: 20 }, (_key, i) => `key:${i}`);
    const share = driver.isShared ? ({ count: 1, permits: 1, rank: 0 } as const) : undefined;
    const request = { owner: 'me', ttl: 60_000, tokens: 1, queue: false, share };
    for (const key of keys) expect(await driver.acquire({ ...request, key })).toMatchObject({ granted: true });
    // Each node knows the script afterwards.
    await Promise.all(driver.renew(keys.map((key) => ({ key, owner: 'me', ttl: 60_000 }))));
    const [gone, taken] = [keys[3]!, keys[15]!];
    for (const key of [gone, taken]) await driver.release({ key, owner: 'me', keepFor: 0 });
    await driver.acquire({ ...request, key: taken, owner: 'other' });
    const before = await on.scriptCalls();
    const replies = await Promise.all(driver.renew(keys.map((key) => ({ key, owner: 'me', ttl: 600_000 }))));
    // At times the fences are renewed too.
    expect([keys.length, 2 * keys.length]).toContain((await on.scriptCalls()) - before);
    expect(replies).toEqual(keys.map((key) => (key === gone || key === taken ? 'lost' : 'renewed')));
    for (const key of keys) {
      const { remaining } = await driver.check({ key, owner: 'me' });
      if (key === taken) expect(remaining).toBeLessThanOrEqual(60_000);
      else if (key !== gone) expect(remaining).toBeGreaterThan(300_000);
    }
  });

  it.each(['acquire', 'renew', 'release'] as const)(
    'whose connection to a node breaks before the reply to an applied %s has no double grant and no false loss (G6, G10)',
    async (verb) => {
      const [node, ...rest] = on.cluster.addresses;
      const proxy = await setting.proxy(node);
      const natMap = Object.fromEntries([
        [`127.0.0.1:${node!.port}`, proxy.connection],
        ...rest.map((each) => [`127.0.0.1:${each.port}`, each]),
      ]);
      const locks = on.locks({ clusterOptions: { natMap } });
      const lost = jest.fn();
      locks.on('lost', lost);
      for (const each of on.keys()) await locks.using(each, () => undefined, woken);
      const loss = proxy.dropReplyTo(shaOf(verb));
      const [key = ''] = on.keys();
      const result = await locks.using(
        key,
        async (lease) => {
          if (verb === 'acquire') expect(await on.locks().tryAcquire(key)).toBeNull();
          if (verb === 'renew') await expect(lease.renew()).rejects.toMatchObject({ name: 'StoreError', transient: true });
          // It may not be connected again yet.
          await eventually(() => lease.renew());
          return 'result';
        },
        { ...woken, retryInterval: 100 },
      );
      expect(result).toBe('result');
      expect(loss.lost).toBe(1);
      expect(lost).not.toHaveBeenCalled();
      expect(await (await on.locks().acquire(key, woken)).release()).toBe(true);
    },
  );
});

it('operators of a Cluster learn what each process does and which callers wait, see what happens, and get keys back', async () => {
  const workers = await Promise.all(
    on.keys().map(async (key) => {
      const locks = askable(setting.locks({ ...on.where, requestTimeout: 5_000 }, { app: 'worker' }));
      return { locks, key, lease: await locks.acquire(key, { ...woken, label: 'Worker.work' }) };
    }),
  );
  const [operator, waiter] = [on.locks(), on.locks()];
  for (const { key, lease } of workers) {
    // A process may open its inbox just now.
    await eventually(async () => {
      const { holders } = await operator.inspect(key);
      expect(holders).toMatchObject([{ owner: lease.owner, pid: process.pid, report: { label: 'Worker.work' } }]);
    });
  }
  const end = new AbortController();
  const seen: string[] = [];
  const watching = (async () => {
    for await (const event of operator.watch({ pattern: '*', signal: end.signal })) seen.push(`${event.event} ${event.key}`);
  })();
  for (const { key, lease } of workers) {
    const next = waiter.acquire(key, { ...woken, fair: true });
    await queued(setting, key, 1);
    // No node knows who listens at the others.
    await eventually(async () => expect((await operator.inspect(key)).waiters).toMatchObject([{ isHeard: true }]));
    await waiter.acquire(key, { waitTimeout: 20 }).catch(() => undefined);
    const release = operator.forceRelease(key, { reason: 'stuck', by: 'jane' });
    await new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
    await lease.release();
    expect(await release).toEqual({ outcome: 'gave back', holder: lease.owner });
    await (await next).release();
  }
  await eventually(() => expect(seen).toEqual(expect.arrayContaining(on.keys().map((key) => `timeout ${key}`))));
  end.abort();
  await watching;
});

/** The ports of the servers that scripts are sent to, one entry for each write to a socket. */
function watchWrites(): { ports: (number | undefined)[]; stop: () => void } {
  const ports: (number | undefined)[] = [];
  // A socket passes what is written to one of these: alone, or what has gathered in the meantime.
  const spies = (['_write', '_writev'] as const).map((name) => {
    const write = Socket.prototype[name] as (this: Socket, ...args: unknown[]) => void;
    return jest.spyOn(Socket.prototype, name).mockImplementation(function (this: Socket, ...args: unknown[]) {
      const [data] = args as [unknown];
      const chunks = name === '_writev' ? (data as { chunk: unknown }[]).map(({ chunk }) => String(chunk)).join('') : data;
      if (/evalsha/i.test(String(chunks))) ports.push(this.remotePort);
      return write.apply(this, args);
    });
  });
  return { ports, stop: () => spies.forEach((spy) => spy.mockRestore()) };
}
