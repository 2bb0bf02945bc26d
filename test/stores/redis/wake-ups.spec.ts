import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { eventually } from '../../support/eventually.js';
import { useRedis } from './setting.js';
import { AT_ONCE, expectWoken, inboxes, killSubscribers, queued, subscribers, turnOf, woken } from './waiting.js';

const KEY = 'order:42';

describe('a waiter', () => {
  const setting = useRedis();

  it.each(['own', 'borrowed'] as const)('of a store with its %s client is woken at once', async (whose) => {
    await expectWoken(setting, setting[whose](), setting[whose](), KEY);
  });

  it('is woken at once when the server has forgotten the scripts', async () => {
    const holder = await setting.own().acquire(KEY, woken);
    const waiting = [turnOf(setting.own().acquire(KEY, woken)), turnOf(setting.own().acquire(KEY, woken))];
    await queued(setting, KEY, 2);
    await setting.redis.script('FLUSH');
    let start = performance.now();
    await holder.release();
    const first = await Promise.race(waiting);
    expect(first.at - start).toBeLessThan(AT_ONCE);
    await setting.redis.script('FLUSH');
    start = performance.now();
    await first.lease.release();
    for (const { at } of await Promise.all(waiting)) expect(at - start).toBeLessThan(AT_ONCE);
  });
});

describe('an inbox that nobody says is broken', () => {
  const setting = useRedis();

  it('is opened anew when a waiter has had to look by itself (G8)', async () => {
    const locks = setting.own();
    await expectWoken(setting, setting.own(), locks, KEY);
    const wakeUps: unknown = locks.store.mutex.wakeUps;
    const { inbox, connection } = wakeUps as { inbox: string; connection: { client: { unsubscribe(channel: string): Promise<unknown> } } };
    // As after a fail-over: connected, and to nobody who speaks.
    await connection.client.unsubscribe(inbox);
    expect(await inboxes(setting)).not.toContain(inbox);
    const holder = await setting.own().acquire(KEY, woken);
    const waiting = locks.acquire(KEY, { ...woken, retryInterval: 20 });
    await eventually(async () => (await inboxes(setting)).includes(inbox));
    await holder.release();
    await (await waiting).release();
  });
});

describe('the inbox of a store', () => {
  const setting = useRedis();

  it.each(['own', 'borrowed'] as const)(
    'of its %s client opens with the first wait for a stranger, once, and is gone when it is closed (G7)',
    async (whose) => {
      const [locks, strangers] = [setting[whose](), setting.own()];
      const local = await locks.acquire('local', woken);
      const behind = locks.acquire('local', woken);
      const holders = await Promise.all(['1', '2', '3'].map((key) => strangers.acquire(key, woken)));
      expect(await locks.tryAcquire('1')).toBeNull();
      await local.release();
      await (await behind).release();
      expect([await subscribers(setting), await inboxes(setting)]).toEqual([0, []]);

      const waiting = holders.map(({ key }) => locks.acquire(key, woken));
      const fair = locks.acquire('1', { ...woken, fair: true });
      await queued(setting, '1', 2);
      await queued(setting, '3', 1);
      expect(await subscribers(setting)).toBe(1);
      expect(await inboxes(setting)).toHaveLength(1);
      await Promise.all(holders.map((holder) => holder.release()));
      await Promise.all([...waiting, fair].map(async (lease) => (await lease).release()));
      expect(await subscribers(setting)).toBe(1);
      await locks.close();
      await eventually(async () => (await subscribers(setting)) === 0 && (await inboxes(setting)).length === 0);
    },
  );

  it('that is lent a client leaves it open and can open again (G7)', async () => {
    const client = setting.client();
    const store = redisStore({ client });
    for (const round of [1, 2]) {
      const locks = new Locks(store, { logger: false });
      await expectWoken(setting, setting.own(), locks, `${KEY}:${round}`);
      expect(store.mutex.wakeUps!.isOpen).toBe(true);
      await locks.close();
      expect(await client.ping()).toBe('PONG');
    }
  });

  it('opens also when the first try at it got no answer, and says nothing of it', async () => {
    const proxy = await setting.proxy();
    const logger = { warn: jest.fn(), error: jest.fn() };
    const locks = setting.locks({ options: { ...proxy.connection, disconnectTimeout: 100 }, requestTimeout: 300 }, { logger });
    const loss = proxy.dropReplyTo((request) => /publish/i.test(request.toString('latin1', 0, 40)), { then: 'silence' });
    const holder = await setting.own().acquire(KEY, woken);
    const waiting = turnOf(locks.acquire(KEY, { ...woken, retryInterval: 1_000 }));
    await eventually(() => loss.lost === 1);
    await eventually(() => locks.store.mutex.wakeUps!.isOpen);
    await queued(setting, KEY, 1);
    const start = performance.now();
    await holder.release();
    expect((await waiting).at - start).toBeLessThan(AT_ONCE);
    expect(logger.warn).not.toHaveBeenCalled();
  });
});

describe('a wake-up that is lost', () => {
  const setting = useRedis();
  const kill = () => killSubscribers(setting);

  it.each([
    [
      'as soon as it listens',
      async () => void (await eventually(async () => Number(await kill()) > 0, { every: 1 })),
      async () => undefined,
    ],
    ['between its place in the queue and the release', async () => undefined, kill],
  ])('because the inbox breaks %s, costs no more than the reconnection (G8)', async (_when, atFirst, beforeRelease) => {
    const holder = await setting.own().acquire(KEY, woken);
    const waiting = turnOf(setting.own().acquire(KEY, woken));
    await atFirst();
    await queued(setting, KEY, 1);
    await beforeRelease();
    const start = performance.now();
    expect(await holder.release()).toBe(true);
    const { lease, at } = await waiting;
    expect(at - start).toBeLessThan(AT_ONCE);
    await lease.release();
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });

  it.each(['just before', 'just after'])(
    'because the inbox breaks %s the release, costs no more than the reconnection (G8)',
    async (when) => {
      for (let round = 0; round < 10; round++) {
        const holder = await setting.own().acquire(KEY, woken);
        const waiting = turnOf(setting.own().acquire(KEY, woken));
        await queued(setting, KEY, 1);
        const start = performance.now();
        const both = when === 'just before' ? [kill(), holder.release()] : [holder.release(), kill()];
        await Promise.all(both);
        const { lease, at } = await waiting;
        expect(at - start).toBeLessThan(AT_ONCE);
        await lease.release();
      }
      expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
    },
  );

  it('while the inbox cannot come back costs two retryIntervals at most (G8)', async () => {
    const proxy = await setting.proxy();
    const holder = await setting.own().acquire(KEY, woken);
    const waiting = turnOf(setting.own(proxy.connection).acquire(KEY, { ...woken, retryInterval: 500 }));
    await queued(setting, KEY, 1);
    proxy.refuse();
    await kill();
    const start = performance.now();
    await holder.release();
    expect((await waiting).at - start).toBeLessThan(2 * 500 + AT_ONCE);
  });
});

describe('a server that is away while callers wait', () => {
  const setting = useRedis();

  it('and is restarted gives the key to one of them within two seconds of its return, and wakes the others as ever (G8)', async () => {
    const lost = await setting.own().acquire(KEY, woken);
    const stores = [setting.own(), setting.own(), setting.own()];
    const waiting = new Set(stores.map((locks) => turnOf(locks.acquire(KEY, woken))));
    await queued(setting, KEY, 3);
    await setting.server.kill();
    await setting.server.restart();
    let start = performance.now();
    let last = lost.fencingToken!;
    for (const within of [2_000, AT_ONCE, AT_ONCE]) {
      const { turn, call } = await Promise.race([...waiting].map(async (one) => ({ turn: await one, call: one })));
      waiting.delete(call);
      expect(turn.at - start).toBeLessThan(within);
      expect(turn.lease.fencingToken).toBeGreaterThan(last);
      last = turn.lease.fencingToken!;
      await queued(setting, KEY, waiting.size);
      start = performance.now();
      expect(await turn.lease.release()).toBe(true);
    }
  });
});
