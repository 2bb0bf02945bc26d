import { LockLostError, LockTimeoutError, QuorumError, StoreError, type Lease, type Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import type { RedisServer } from '../../support/redis-server.js';
import { pause } from '../../support/time.js';
import { rejection } from '../../contract/rejection.js';
import { useQuorum } from './setting.js';

const setting = useQuorum(5);
const long = { keyTimeout: 60_000, waitTimeout: 10_000 };

afterEach(async () => {
  for (const server of setting.servers) {
    await server.resume();
    await server.restart();
  }
});

/** Works the key as two apps do, one after the other and at the same time. */
async function expectLocksWork(one: Locks, other: Locks): Promise<void> {
  const key = setting.newKey();
  const first = await one.acquire(key, long);
  expect(await other.tryAcquire(key)).toBeNull();
  const waiting = other.acquire(key, { ...long, retryInterval: 100 });
  await first.renew();
  expect(await first.release()).toBe(true);
  const second = await waiting;
  expect(second.fencingToken).toBeGreaterThan(first.fencingToken!);
  expect(await one.tryAcquire(key)).toBeNull();
  await second.release();
}

/** Each server, and each two of them. */
const minorities = [0, 1, 2, 3, 4].flatMap((one) =>
  [0, 1, 2, 3, 4].filter((other) => other >= one).map((other) => [[...new Set([one, other])]]),
);
const pairs = minorities.flatMap(([indexes]) => (indexes!.length === 2 ? [indexes!] : []));

describe('a minority of the servers', () => {
  const each = (indexes: readonly number[], fault: (server: RedisServer) => Promise<void>) =>
    Promise.all(indexes.map((index) => fault(setting.servers[index]!)));

  it.each(minorities)('that is killed (%p) stops no lock', async (dead) => {
    const [one, other] = [setting.open(), setting.open()];
    await each(dead, (server) => server.kill());
    await expectLocksWork(one, other);
  });

  it.each(minorities)('that hangs (%p) stops no lock', async (dead) => {
    const [one, other] = [setting.open(), setting.open()];
    await expectLocksWork(one, other);
    await each(dead, (server) => server.pause());
    await expectLocksWork(one, other);
  });

  it.each(minorities)('that is emptied under a lease (%p) takes it from nobody, and gets it back', async (emptied) => {
    const key = setting.newKey();
    const lease = await setting.open().acquire(key, { keyTimeout: 900 });
    await each(emptied, async (server) => void (await server.client().flushall()));
    expect(await setting.open().tryAcquire(key)).toBeNull();
    await eventually(async () => expect(await setting.values(key)).toEqual(Array(5).fill(lease.owner)), { within: 5_000 });
    lease.assertHeld();
    await lease.release();
    await eventually(async () => expect(await setting.values(key)).toEqual(Array(5).fill(null)));
  });

  it('whose replies are lost stops no lock', async () => {
    const proxies = await setting.proxies();
    const [one, other] = [0, 1].map(() => setting.open({ quarantine: 0 }, proxies.map(setting.store))) as [Locks, Locks];
    await expectLocksWork(one, other);
    for (const proxy of proxies.slice(0, 2)) proxy.dropReplies();
    await expectLocksWork(one, other);
    await Promise.all(proxies.map((proxy) => proxy.heal()));
    await expectLocksWork(one, other);
  });
});

describe('a majority of the servers', () => {
  it('that is away is a QuorumError, which says of each server why, and passes', async () => {
    const locks = setting.open();
    const key = setting.newKey();
    await locks.using(setting.newKey(), () => undefined);
    for (const server of setting.servers.slice(0, 3)) await server.kill();
    const error = await rejection(locks.acquire(key, { waitTimeout: 0 }));
    expect(error).toBeInstanceOf(QuorumError);
    expect(error).toMatchObject({ transient: true, key });
    const { votes } = error as QuorumError;
    expect(votes).toHaveLength(5);
    expect(votes.slice(3)).toEqual(['granted', 'granted']);
    for (const vote of votes.slice(0, 3)) expect(vote).toBeInstanceOf(StoreError);
    // The votes of the others were given back.
    const waiting = locks.acquire(key, { ...long, retryInterval: 100 });
    for (const server of setting.servers.slice(0, 3)) await server.restart();
    await (await waiting).release();
  });

  it('that hangs is no loss until the end of the lease, and then one', async () => {
    const lease = await setting.open().acquire(setting.newKey(), { keyTimeout: 2_000 });
    const end = performance.now() + lease.remaining();
    for (const server of setting.servers.slice(0, 3)) await server.pause();
    const aborted = new Promise<number>((resolve) => lease.signal.addEventListener('abort', () => resolve(performance.now())));
    expect(await aborted).toBeGreaterThan(end - 100);
    expect(() => lease.assertHeld()).toThrow(LockLostError);
  });

  it('that holds the key is contention, also while the others are away', async () => {
    const key = setting.newKey();
    const lease = await setting.open().acquire(key, long);
    for (const server of setting.servers.slice(3)) await server.kill();
    const error = await rejection(setting.open().acquire(key, { waitTimeout: 50 }));
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect((error as LockTimeoutError).holder).toBe(lease.owner);
  });
});

describe('a server that was started again, and is empty', () => {
  /** A has the key at the first three, B can have it at the last three. */
  async function held(quarantine: number): Promise<{ lease: Lease; rival: Locks; key: string }> {
    const proxies = await setting.proxies();
    const key = setting.newKey();
    const [locks, rival] = [0, 1].map(() => setting.open({ quarantine }, proxies.map(setting.store))) as [Locks, Locks];
    for (const each of [locks, rival]) await eventually(() => each.using(setting.newKey(), () => undefined, { keyTimeout: 1_000 }));
    for (const server of setting.servers.slice(3)) await server.pause();
    const lease = await locks.acquire(key, { keyTimeout: quarantine || 10_000, renew: false });
    await setting.servers[2]!.restart();
    for (const server of setting.servers.slice(3)) await server.resume();
    // What has come to the others meanwhile.
    for (const server of setting.servers.slice(3)) await server.client().flushall();
    return { lease, rival, key };
  }

  it('does not vote within the quarantine: no second holder', async () => {
    const quarantine = 4_000;
    // Those of this test have been asked for long enough.
    const { lease, rival, key } = await held(quarantine);
    let refused = 0;
    while (lease.remaining() > 0) {
      const second = await rival
        .tryAcquire(key, { keyTimeout: 1_000 })
        .catch((error: unknown) => void expect(error).toBeInstanceOf(QuorumError));
      if (second) {
        // Asked for before the end, and granted after it.
        expect(lease.remaining()).toBe(0);
        await second.release();
      } else refused++;
      await pause(50);
    }
    expect(refused).toBeGreaterThan(5);
    await (await rival.acquire(key, { keyTimeout: 1_000, waitTimeout: 20_000, retryInterval: 100 })).release();
  }, 40_000);

  it('votes at once without a quarantine: then the key is granted twice, as the documents say', async () => {
    const { lease, rival, key } = await held(0);
    const second = await rival.acquire(key, { waitTimeout: 3_000 });
    lease.assertHeld();
    second.assertHeld();
    expect(second.fencingToken).toBeGreaterThan(0);
  });
});

it('a lease outlives every server it was granted by, if two at a time are away', async () => {
  const lease = await setting.open().acquire(setting.newKey(), { keyTimeout: 3_000 });
  const rival = setting.open();
  for (let round = 0; round < 30; round++) {
    const away = pairs[round % pairs.length]!.map((index) => setting.servers[index]!);
    await Promise.all(away.map((server) => server.kill()));
    await lease.renew();
    const refusal = await rival.tryAcquire(lease.key).catch((error: unknown) => error);
    if (refusal !== null) expect(refusal).toBeInstanceOf(QuorumError);
    await Promise.all(away.map((server) => server.restart()));
    // It is given back to the servers by the renewals.
    await eventually(async () => {
      await lease.renew();
      expect(await setting.values(lease.key)).toEqual(Array(5).fill(lease.owner));
    });
  }
  expect(await lease.release()).toBe(true);
}, 120_000);
