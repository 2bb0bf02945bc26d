import { StoreError, type Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { slotOf } from '../../support/redis-cluster.js';
import { pause } from '../../support/time.js';
import { useCluster } from './cluster.setting.js';
import { HEAD_START, SLACK, outcomeOf, type StoreOptions } from './setting.js';

const PATIENCE = 300;
/** A store is usable within so many milliseconds of the Cluster's return. */
const BACK = 1_000;
const patient = { keyTimeout: 10_000, waitTimeout: 15_000 };
const endless = { ...patient, waitTimeout: Infinity, retryInterval: 100 };

describe('a Cluster', () => {
  const on = useCluster();
  const { setting } = on;
  const FORMS: [string, number, (options: StoreOptions) => Locks][] = [
    ['own', 1_000, on.locks],
    ['lent', 1_000, on.borrowed],
  ];
  /** Also those that show what the nodes say within a requestTimeout: at once, and when they have asked in vain for some time. */
  const TELLING: typeof FORMS = [
    ...FORMS,
    ['own and repeats nothing', 1_000, (options) => on.locks({ ...options, clusterOptions: { retryDelayOnClusterDown: 0 } })],
    ['lent and has more time', 2_500, on.borrowed],
  ];

  /** One key at each master. */
  const keys = () => on.cluster.masters.map((node) => on.cluster.keysOn(node, 1)[0]!);
  const clients = () => on.cluster.masters.map((node) => node.client());
  const connect = (locks: Locks) => Promise.all(keys().map((key) => locks.using(key, () => undefined, patient)));

  async function failsInTime(locks: Locks, key: string, requestTimeout: number): Promise<void> {
    const { error, took } = await outcomeOf(locks.acquire(key, { keyTimeout: 10_000, waitTimeout: PATIENCE, retryInterval: 50 }));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ key, transient: true });
    expect(took).toBeGreaterThanOrEqual(PATIENCE - HEAD_START);
    expect(took).toBeLessThan(PATIENCE + requestTimeout + SLACK);
  }

  /** Whoever waits without an end gets its key soon after `back` has resolved. */
  async function goesOn(locks: Locks, back: () => Promise<unknown>): Promise<void> {
    const calls = keys().map((key) => locks.acquire(key, endless));
    for (const call of calls) call.catch(() => undefined);
    await back();
    for (const { value, error, took } of await Promise.all(calls.map((call) => outcomeOf(call)))) {
      expect(error).toBeUndefined();
      expect(took).toBeLessThan(BACK + SLACK);
      expect(await value!.release()).toBe(true);
    }
  }

  const served = async (): Promise<void> => {
    for (const client of clients()) {
      await eventually(async () => expect(await client.cluster('INFO')).toMatch(/cluster_state:ok/), { within: 15_000, every: 20 });
      client.disconnect();
    }
  };

  it.each(TELLING)(
    'one of whose slots nobody serves fails calls in time, and is used again at once, with a client that is %s (G9)',
    async (_, requestTimeout, open) => {
      const { cluster } = on;
      const locks = open({ requestTimeout });
      await connect(locks);
      const [key] = keys() as [string];
      const slot = slotOf(key);
      const [owner, ...others] = clients();
      for (const client of clients()) await client.config('RESETSTAT');
      // At its owner first, which would tell the others that it has it.
      for (const client of [owner!, ...others]) await client.cluster('DELSLOTS', slot);
      for (const client of [owner!, ...others])
        await eventually(async () => expect(await client.cluster('INFO')).toMatch(/cluster_state:fail/));
      // Also those whose slots are served: so Redis has it by default.
      for (const each of keys()) await failsInTime(locks, each, requestTimeout);
      for (const client of [owner!, ...others]) expect(await client.info('errorstats')).toContain('errorstat_CLUSTERDOWN:');
      await goesOn(locks, async () => {
        await owner!.cluster('ADDSLOTS', slot);
        for (const client of others) await client.cluster('SETSLOT', slot, 'NODE', cluster.idOf(cluster.masters[0]!));
        await served();
      });
    },
  );

  describe('whose client asks again for a key when the time of the request is over', () => {
    const REQUEST_TIMEOUT = 3_000;
    const ASKS_AGAIN = 6_000;

    const options = { keyTimeout: 60_000, retryInterval: 50 };

    it.each<[string, (locks: Locks, key: string) => Promise<unknown>]>([
      [
        'of a call that was given up',
        async (locks, key) => {
          const { error } = await outcomeOf(locks.using(key, () => undefined, { ...options, waitTimeout: PATIENCE }));
          expect(error).toBeInstanceOf(StoreError);
        },
      ],
      [
        'that was granted to a later request, and released',
        (locks, key) => locks.using(key, () => undefined, { ...options, waitTimeout: 15_000 }),
      ],
      [
        'that was granted to a later request, and handed over',
        async ({ store: { mutex } }, key) => {
          const request = { key, owner: 'first', ttl: 60_000, tokens: 1, queue: false };
          expect((await outcomeOf(mutex.acquire(request))).error).toBeInstanceOf(StoreError);
          expect(await mutex.acquire(request)).toMatchObject({ granted: true });
          expect(await mutex.acquire({ ...request, owner: 'second', yields: 'first' })).toMatchObject({ granted: true });
          expect(await mutex.release({ key, owner: 'second', keepFor: 0 })).toBe('released');
        },
      ],
    ])(
      'keeps no key %s (G6)',
      async (_, use) => {
        const { cluster } = on;
        const locks = on.locks({ requestTimeout: REQUEST_TIMEOUT, clusterOptions: { retryDelayOnClusterDown: ASKS_AGAIN } });
        await connect(locks);
        const [key] = keys() as [string];
        const slot = slotOf(key);
        const [owner, ...others] = clients();
        for (const client of [owner!, ...others]) await client.cluster('DELSLOTS', slot);
        await eventually(async () => expect(await owner!.cluster('INFO')).toMatch(/cluster_state:fail/));
        await owner!.config('RESETSTAT');
        const sentAt = performance.now();
        const used = use(locks, key);
        await eventually(async () => expect(await owner!.info('errorstats')).toContain('errorstat_CLUSTERDOWN:'));
        await owner!.cluster('ADDSLOTS', slot);
        for (const client of others) await client.cluster('SETSLOT', slot, 'NODE', cluster.idOf(cluster.masters[0]!));
        await served();
        expect(performance.now() - sentAt).toBeLessThan(REQUEST_TIMEOUT);
        await used;
        await pause(sentAt + ASKS_AGAIN + 500 - performance.now());
        await eventually(async () => expect(await setting.redis.exists(key)).toBe(0), { within: 5_000 });
      },
      30_000,
    );
  });

  const WAYS: Record<string, { begin: () => Promise<unknown>; end: () => Promise<unknown> }> = {
    'are killed': {
      begin: () => Promise.all(on.cluster.nodes.map((node) => node.kill())),
      end: () => Promise.all(on.cluster.nodes.map((node) => node.restart())),
    },
    hang: {
      begin: () => Promise.all(on.cluster.nodes.map((node) => node.pause())),
      end: () => Promise.all(on.cluster.nodes.map((node) => node.resume())),
    },
  };

  it.each(Object.keys(WAYS).flatMap((way) => FORMS.map((form) => [way, ...form] as const)))(
    'all of whose nodes %s fails calls in time, and is used again at once, with a client that is %s (G9)',
    async (way, _whose, requestTimeout, open) => {
      const locks = open({ requestTimeout });
      await connect(locks);
      const { begin, end } = WAYS[way]!;
      await begin();
      try {
        for (const key of keys()) await failsInTime(locks, key, requestTimeout);
        // A client that has never been connected has no node to ask.
        await failsInTime(open({ requestTimeout }), keys()[0]!, requestTimeout);
      } finally {
        await goesOn(locks, async () => {
          await end();
          await served();
        });
      }
    },
    60_000,
  );
});
