import type { Redis } from 'ioredis';
import type { Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { SLACK, useRedis } from './setting.js';
import { AT_ONCE, expectWoken, queued, subscribers, turnOf, woken } from './waiting.js';

const KEY = 'order:42';

interface Inbox {
  readonly inbox: string;
  readonly isOpen: boolean;
  /** A new one each time that it breaks. */
  readonly connection: { readonly client: Redis & { stream: { pause(): void } } };
}
const inboxOf = ({ store }: Locks): Inbox => store.mutex.wakeUps as unknown as Inbox;

describe('an inbox', () => {
  const setting = useRedis({ port: 'free' });

  it('whose connection is half open is found by its own message, and opened anew (G8)', async () => {
    // Of ioredis whatever client is tested: the test stops the reading of its socket.
    const locks = setting.locks({ client: setting.client() });
    await expectWoken(setting, setting.own(), locks, 'other');
    const broken = inboxOf(locks).connection.client.stream;
    const holder = await setting.own().acquire(KEY, woken);
    const waiting = locks.acquire(KEY, { ...woken, retryInterval: 50 });
    await queued(setting, KEY, 1);
    // The server still counts it as a listener, and nothing is read there.
    broken.pause();
    await eventually(() => inboxOf(locks).connection.client.stream !== broken && inboxOf(locks).isOpen, { within: 3_000 + SLACK });
    await holder.release();
    await (await waiting).release();
    await expectWoken(setting, setting.own(), locks, KEY);
  });

  it('that only listeners to all channels hear is not open (G8)', async () => {
    await setting.client().psubscribe('*');
    const locks = setting.own();
    await expectWoken(setting, setting.own(), locks, 'other');
    const { inbox, connection } = inboxOf(locks);
    await connection.client.unsubscribe(inbox);
    const holder = await setting.own().acquire(KEY, woken);
    const waiting = locks.acquire(KEY, { ...woken, retryInterval: 20 });
    await eventually(async () => ((await setting.redis.pubsub('NUMSUB', inbox)) as [string, number])[1] === 1);
    await holder.release();
    await (await waiting).release();
  });

  describe('that opens at another server', () => {
    let elsewhere: RedisServer;
    beforeAll(async () => {
      elsewhere = await startRedis({ port: 'free' });
    });
    afterAll(() => elsewhere.stop());

    /** Locks whose inbox is opened at the other server. */
    function misled() {
      const client = setting.client();
      const duplicate = client.duplicate.bind(client);
      const where = { host: '127.0.0.1', port: elsewhere.port, path: undefined };
      client.duplicate = (options) => duplicate({ ...options, ...where });
      const logger = { warn: jest.fn(), error: jest.fn() };
      return { locks: setting.locks({ client }, { logger }), logger, where };
    }

    const hasWarned = ({ logger }: ReturnType<typeof misled>) =>
      eventually(() => expect(logger.warn).toHaveBeenCalledWith(expect.stringMatching(/poll.*do not arrive/s)), { within: 10_000 });

    it('where nothing arrives has its waiters poll, with one warning, and is opened later when messages arrive (G8)', async () => {
      const opened = misled();
      const { locks, logger, where } = opened;
      let holder = await setting.own().acquire(KEY, woken);
      let waiting = turnOf(locks.acquire(KEY, { ...woken, retryInterval: 300 }));
      await hasWarned(opened);
      let start = performance.now();
      await holder.release();
      const turn = await waiting;
      expect(turn.at - start).toBeLessThan(2 * 300 + AT_ONCE);
      await turn.lease.release();

      holder = await setting.own().acquire(KEY, woken);
      waiting = turnOf(locks.acquire(KEY, woken));
      await queued(setting, KEY, 1);
      expect(await subscribers(setting)).toBe(0);
      where.port = setting.server.port;
      await eventually(() => inboxOf(locks).isOpen, { within: 10_000 });
      await eventually(async () => expect((await setting.redis.zrange(`{${KEY}}:queue`, '0', '-1'))[0]).toContain(inboxOf(locks).inbox));
      start = performance.now();
      await holder.release();
      const { lease, at } = await waiting;
      expect(at - start).toBeLessThan(AT_ONCE);
      await lease.release();
      expect(logger.warn).toHaveBeenCalledTimes(1);
    });

    it('which is a replica, where all messages arrive, has its waiters poll: the master takes them for gone (G8)', async () => {
      const replica = elsewhere.client();
      setting.finally(async () => {
        await replica.replicaof('NO', 'ONE');
        replica.disconnect();
      });
      await replica.replicaof('127.0.0.1', setting.server.port!);
      await eventually(async () => expect(await replica.info('replication')).toMatch(/master_link_status:up/), { within: 10_000 });
      const opened = misled();
      const holder = await setting.own().acquire(KEY, woken);
      const waiting = turnOf(opened.locks.acquire(KEY, { ...woken, retryInterval: 300 }));
      await hasWarned(opened);
      expect(inboxOf(opened.locks).isOpen).toBe(false);
      const start = performance.now();
      await holder.release();
      const { lease, at } = await waiting;
      expect(at - start).toBeLessThan(2 * 300 + AT_ONCE);
      await lease.release();
    });
  });
});
