import type { Lock, Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { useCluster } from './cluster.setting.js';
import type { As } from './locker.child.js';
import { SLACK } from './setting.js';
import { AT_ONCE, expectWoken, lockers, queued, turnOf, woken, wokenChild } from './waiting.js';

const KEY = 'order:42';
/** Milliseconds that a process has to take the lock that it is offered. */
const OFFER = 1_000;
/** Milliseconds until a waiter who asks every second listens elsewhere: it asks, its message does not come back within a requestTimeout, it connects. */
const FOUND_SILENT = 1_000 + 1_000 + SLACK;

describe('waiters on a Cluster', () => {
  const on = useCluster();
  const { setting } = on;

  /** Processes whose inboxes are open. */
  async function listeningLockers(count: number) {
    const children = await lockers(setting, count + 1, on.where);
    const holder = children.pop()!;
    holder.send({ type: 'acquire', key: 'warm-up', options: wokenChild });
    await holder.waitFor('granted');
    for (const child of children) child.send({ type: 'acquire', key: 'warm-up', options: wokenChild });
    await eventually(async () => expect(await on.listeners()).toHaveLength(count), { within: 10_000 });
    holder.send({ type: 'release', key: 'warm-up' });
    await Promise.all(
      children.map(async (child) => {
        await child.waitFor('granted');
        child.send({ type: 'release', key: 'warm-up' });
        await child.waitFor('released');
      }),
    );
    return { holder, children };
  }

  it('in other processes are woken at once by a release, in their order, without polling, wherever the key is (G8)', async () => {
    const { holder: first, children } = await listeningLockers(3);
    for (const key of on.cluster.masters.map((node) => on.cluster.keysOn(node, 1)[0]!)) {
      let holder = first;
      holder.send({ type: 'acquire', key, options: wokenChild });
      await holder.waitFor('granted');
      for (const [index, child] of children.entries()) {
        child.send({ type: 'acquire', key, options: wokenChild });
        await queued(setting, key, index + 1);
      }
      const before = await on.scriptCalls();
      for (const child of children) {
        const start = performance.now();
        holder.send({ type: 'release', key });
        await child.waitFor('granted');
        expect(performance.now() - start).toBeLessThan(AT_ONCE);
        holder = child;
      }
      holder.send({ type: 'release', key });
      await holder.waitFor('released');
      // A release and a confirmation each; those behind may ask once when an offer should have ended.
      expect((await on.scriptCalls()) - before).toBeLessThanOrEqual(3 * children.length + 1);
      expect(await setting.redis.exists(key, `{${key}}:queue`)).toBe(0);
    }
  });

  it.each<[string, (locks: Locks) => Lock]>([
    ['a mutex', (locks) => locks.mutex(KEY)],
    ['a write lock', (locks) => locks.readWriteLock(KEY).write],
    ['a semaphore', (locks) => locks.semaphore(KEY, { permits: 1 })],
  ])('of %s get it at once, the fair ones in their order (G8)', async (_what, lockOf) => {
    const stores = [on.locks(), on.locks(), on.locks()];
    let holder = await lockOf(stores[0]!).acquire(woken);
    const order: number[] = [];
    const turns = Array.from({ length: 9 }, async (_, i) => {
      await queued(setting, KEY, i);
      const turn = await turnOf(lockOf(stores[i % 3]!).acquire({ ...woken, fair: true }));
      order.push(i);
      return turn;
    });
    await queued(setting, KEY, 9);
    await eventually(async () => expect(await on.listeners()).toHaveLength(3));
    for (const turn of turns) {
      const start = performance.now();
      await holder.release();
      const { lease, at } = await turn;
      expect(at - start).toBeLessThan(AT_ONCE);
      holder = lease;
    }
    await holder.release();
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(await setting.redis.exists(KEY, `{${KEY}}:queue`)).toBe(0);
  });

  it('of a latch go on at once, and a client that is lent wakes and is woken too (G8)', async () => {
    const [mine, lent] = [on.locks(), on.borrowed()];
    await expectWoken(setting, mine, lent, KEY);
    const latch = mine.countDownLatch('done');
    await latch.trySetCount(1);
    const waiting = lent.countDownLatch('done').await({ waitTimeout: 60_000 });
    await eventually(async () =>
      expect(Object.keys(await setting.redis.hgetall('done'))).toContainEqual(expect.stringMatching(/^waiter:/)),
    );
    const start = performance.now();
    await latch.countDown();
    await waiting;
    expect(performance.now() - start).toBeLessThan(AT_ONCE);
  });

  describe.each<[string, As | undefined, (locks: Locks) => Lock]>([
    ['of a mutex', undefined, (locks) => locks.mutex(KEY)],
    ['of a write lock', 'write', (locks) => locks.readWriteLock(KEY).write],
  ])('%s behind fifty fair ones of another process', (_what, as, lockOf) => {
    async function crowd() {
      const [child] = await lockers(setting, 1, on.where);
      const holder = await lockOf(on.locks()).acquire(woken);
      for (let i = 0; i < 50; i++) child!.send({ type: 'cycle', key: KEY, as, options: { ...wokenChild, fair: true } });
      await queued(setting, KEY, 50);
      // One that is killed before it has told its inbox is waited for until its place runs out.
      await eventually(async () =>
        (await setting.redis.zrange(`{${KEY}}:queue`, '0', '-1')).every((place) => place.includes('inbox:cluster:')),
      );
      const next = turnOf(lockOf(on.locks()).acquire(woken));
      await queued(setting, KEY, 51);
      return { child: child!, holder, next };
    }

    it('wait a second in all where that one was killed (G8)', async () => {
      const { child, holder, next } = await crowd();
      await child.kill();
      const start = performance.now();
      await holder.release();
      const { lease, at } = await next;
      expect(at - start).toBeLessThan(OFFER + SLACK);
      await lease.release();
      expect(await setting.redis.exists(KEY, `{${KEY}}:queue`)).toBe(0);
    });

    it('wait a second in all where that one hangs, and it gets its turns when it goes on (G2, G8)', async () => {
      const { child, holder, next } = await crowd();
      child.pause();
      const start = performance.now();
      await holder.release();
      const { lease, at } = await next;
      expect(at - start).toBeLessThan(OFFER + SLACK);
      child.resume();
      // They learn that they have lost their places, and wait again: long before they would ask by themselves.
      await queued(setting, KEY, 50);
      lease.assertHeld();
      await lease.release();
      await queued(setting, KEY, 49);
    });
  });
});

describe('waiters on a Cluster with replicas', () => {
  const on = useCluster({ masters: 3, replicas: 1 });
  const { setting } = on;

  it.each([
    ['own', () => on.locks()],
    ['lent', () => on.borrowed()],
  ])(
    'whose node of the inbox hangs listen at another one soon, and are woken at once again, with a client that is %s (G8)',
    async (_, open) => {
      const [mine, others] = [open(), open()];
      // It listens nowhere, since it never waits.
      const holder = await mine.acquire(KEY, woken);
      const next = turnOf(others.acquire(KEY, { ...woken, retryInterval: 500 }));
      await queued(setting, KEY, 1);
      const [node] = await eventually(async () => {
        const nodes = await on.listeners();
        expect(nodes).toHaveLength(1);
        return nodes;
      });
      // A replica: what is asked of the masters goes on, and the connection to it stays open.
      expect(on.cluster.masters).not.toContain(node);
      await node!.pause();
      setting.finally(() => node!.resume());
      const rest = on.cluster.nodes.filter((each) => each !== node);
      await eventually(async () => expect(await on.listeners(rest)).toHaveLength(1), { within: FOUND_SILENT });
      // Who waits for this key would not ask for a minute.
      const other = await mine.acquire('other', woken);
      const later = turnOf(others.acquire('other', woken));
      await queued(setting, 'other', 1);
      for (const [held, turn] of [
        [other, later],
        [holder, next],
      ] as const) {
        const start = performance.now();
        await held.release();
        const { lease, at } = await turn;
        expect(at - start).toBeLessThan(AT_ONCE);
        await lease.release();
      }
    },
  );

  it('whose node of the inbox dies get the next key within two retryIntervals, and the later ones at once (G8)', async () => {
    const [mine, others] = [on.locks(), on.locks()];
    await expectWoken(setting, mine, others, KEY);
    const retryInterval = 1_000;
    for (let round = 0; round < 2; round++) {
      const holder = await mine.acquire(KEY, woken);
      const next = turnOf(others.acquire(KEY, { ...woken, retryInterval }));
      await queued(setting, KEY, 1);
      const nodes = await on.listeners();
      expect(nodes.length).toBe(2);
      // All that replicas would do is to take over, which nobody asks them to.
      expect(on.cluster.masters).not.toEqual(expect.arrayContaining(nodes));
      const start = performance.now();
      await Promise.all([...nodes.map((node) => node.kill()), holder.release()]);
      const { lease, at } = await next;
      expect(at - start).toBeLessThan(2 * retryInterval + SLACK);
      await lease.release();
      await eventually(async () => expect((await on.listeners()).length).toBe(2), { within: 10_000 });
      await expectWoken(setting, mine, others, KEY);
      for (const node of nodes) await node.restart();
      await eventually(
        async () =>
          expect((await Promise.all(nodes.map((node) => node.client().info('replication')))).join()).not.toMatch(/link_status:down/),
        { within: 10_000 },
      );
    }
  });
});
