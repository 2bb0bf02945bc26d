import { StoreError, type Locks } from 'nestjs-distributed-lock/core';
import { rejection } from '../../support/rejection.js';
import { eventually } from '../../support/eventually.js';
import { slotOf } from '../../support/redis-cluster.js';
import { useOwnCluster } from './cluster.setting.js';
import { outcomeOf, shaOf } from './setting.js';

const PATIENCE = 300;
const patient = { keyTimeout: 10_000, waitTimeout: 60_000 };
const endless = { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 100 };

describe('a Cluster', () => {
  const on = useOwnCluster();
  const { setting } = on;

  const connect = (locks: Locks) => Promise.all(on.keys().map((key) => locks.using(key, () => undefined, patient)));

  async function fails(locks: Locks, key: string): Promise<void> {
    const { error, took } = await outcomeOf(() => locks.acquire(key, { ...endless, waitTimeout: PATIENCE, retryInterval: 50 }));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ key, transient: true });
    expect(Math.ceil(took)).toBeGreaterThanOrEqual(PATIENCE);
  }

  /** Everybody who waits without an end gets the key when the nodes are back. */
  async function goesOn(stores: Locks[], back: () => Promise<unknown>): Promise<void> {
    const calls = stores.flatMap((locks) => on.keys().map((key) => outcomeOf(locks.using(key, () => 'served', endless))));
    await back();
    for (const outcome of await Promise.all(calls)) expect(outcome).toMatchObject({ value: 'served' });
  }

  const says = (state: 'ok' | 'fail') =>
    on.each((client) => eventually(async () => expect(await client.cluster('INFO')).toContain(`cluster_state:${state}`), { every: 20 }));

  /** Takes the slot of the first of the keys from its node, and returns how to give it back. */
  async function withdrawSlot(): Promise<() => Promise<unknown>> {
    const [owner, ...others] = on.cluster.masters.map((node) => node.client());
    const slot = slotOf(on.keys()[0]!);
    // At its owner first, which would tell the others that it has it.
    for (const client of [owner!, ...others]) await client.cluster('DELSLOTS', slot);
    await says('fail');
    return async () => {
      await owner!.cluster('ADDSLOTS', slot);
      for (const client of others) await client.cluster('SETSLOT', slot, 'NODE', on.cluster.idOf(on.cluster.masters[0]!));
      await says('ok');
      for (const client of [owner!, ...others]) client.disconnect();
    };
  }

  it('one of whose slots nobody serves fails calls with an outage, and is used again later (G9)', async () => {
    const requestTimeout = 1_000;
    const stores = [
      on.locks({ requestTimeout }),
      on.locks({ requestTimeout, clusterOptions: { retryDelayOnClusterDown: 0 } }),
      // What the nodes say is known within a requestTimeout: at once, and when they have been asked in vain for some time.
      on.locks({ requestTimeout: 2_500 }),
    ];
    await Promise.all(stores.map(connect));
    await on.each((client) => client.config('RESETSTAT'));
    const giveBack = await withdrawSlot();
    // Also those whose slots are served: Redis does so by default.
    await Promise.all(stores.flatMap((locks) => on.keys().map((key) => fails(locks, key))));
    for (const stats of await on.each((client) => client.info('errorstats'))) expect(stats).toContain('errorstat_CLUSTERDOWN:');
    await goesOn(stores, giveBack);
  });

  // Longer than the test may take.
  const long = { keyTimeout: 300_000, retryInterval: 50 };

  it.each<[string, number, (locks: Locks, key: string, back: () => Promise<unknown>) => Promise<unknown>]>([
    [
      'of a call that was given up',
      0,
      async (locks, key, back) => {
        const error = rejection(locks.acquire(key, { ...long, waitTimeout: PATIENCE }));
        await back();
        expect(await error).toBeInstanceOf(StoreError);
      },
    ],
    [
      'that was granted to a later request, and released',
      1,
      async (locks, key, back) => {
        const used = locks.using(key, () => undefined, { ...long, waitTimeout: Infinity });
        await back();
        await used;
      },
    ],
    [
      'that was granted to a later request, and handed over',
      2,
      async ({ store: { mutex } }, key, back) => {
        const request = { key, owner: 'first', ttl: long.keyTimeout, tokens: 1, queue: false };
        const first = rejection(mutex.acquire(request));
        await back();
        expect(await first).toBeInstanceOf(StoreError);
        expect(await mutex.acquire(request)).toMatchObject({ granted: true });
        expect(await mutex.acquire({ ...request, owner: 'second', yields: 'first' })).toMatchObject({ granted: true });
        expect(await mutex.release({ key, owner: 'second', keepFor: 0 })).toBe('released');
      },
    ],
  ])('whose client would ask again for a key when the time of the request is over keeps no key %s (G6)', async (_, acquires, use) => {
    const locks = on.locks({ requestTimeout: 1_500, clusterOptions: { retryDelayOnClusterDown: 3_000 } });
    await connect(locks);
    const [key = ''] = on.keys();
    const owner = on.cluster.masters[0]!.client();
    await owner.config('RESETSTAT');
    let [seen, late] = [0, 0];
    for (const node of on.cluster.masters) {
      const monitor = await node.client().monitor();
      setting.finally(() => monitor.disconnect());
      monitor.on('monitor', (_time: string, args: string[]) => {
        // What is refused for the lack of a slot is not shown.
        if (args[1] === shaOf('acquire') && args.includes(key)) seen++;
        // It may go to any node.
        if (args[0] === 'ping') late++;
      });
    }
    const giveBack = await withdrawSlot();
    await use(locks, key, async () => {
      await eventually(async () => expect(await owner.info('errorstats')).toContain('errorstat_CLUSTERDOWN:'));
      await giveBack();
    });
    // What the client sends at last does nothing.
    await eventually(() => expect(late).toBeGreaterThan(0));
    expect(seen).toBeGreaterThanOrEqual(acquires);
    await eventually(async () => expect(await setting.redis.exists(key)).toBe(0));
    owner.disconnect();
  });

  it('one of whose nodes hangs loses no lease of the other nodes, and is used again when it goes on (G4, G9)', async () => {
    const [node, other] = on.cluster.masters.map((master) => on.cluster.keysOn(master, 10)) as [string[], string[]];
    const stores = [1, 2].map(() => on.locks({ requestTimeout: 1_000 }));
    const acquired = (keys: string[]) => Promise.all(keys.map((key, i) => stores[i % 2]!.acquire(key, { ...patient, keyTimeout: 5_000 })));
    const [here, there] = [await acquired(node), await acquired(other)];
    await on.cluster.masters[0]!.pause();
    setting.finally(() => on.cluster.masters[0]!.resume());
    // If the silence of the node counted against the others, theirs would be lost by then.
    await eventually(() => here.every((lease) => lease.signal.aborted));
    for (const lease of there) lease.assertHeld();
    expect(await Promise.all(there.map((lease) => lease.release()))).not.toContain(false);
    await on.cluster.masters[0]!.resume();
    for (const locks of stores) await locks.using(node[0]!, () => undefined, patient);
  });

  const eachNode = (act: 'kill' | 'restart' | 'pause' | 'resume') => Promise.all(on.cluster.nodes.map((node) => node[act]()));

  it.each([
    ['are killed', 'kill', 'restart'],
    ['hang', 'pause', 'resume'],
  ] as const)('all of whose nodes %s fails calls with an outage, and is used again later (G9)', async (_way, begin, end) => {
    const stores = [1, 2].map(() => on.locks({ requestTimeout: 1_000 }));
    await Promise.all(stores.map(connect));
    await eachNode(begin);
    let isBack = false;
    const back = async () => {
      if (isBack) return;
      isBack = true;
      await eachNode(end);
      await says('ok');
    };
    setting.finally(back);
    // A client that has never been connected has no node to ask.
    const fresh = [on.locks({ requestTimeout: 1_000 })];
    await Promise.all([...stores, ...fresh].flatMap((locks) => on.keys().map((key) => fails(locks, key))));
    await goesOn([...stores, ...fresh], back);
  });
});
