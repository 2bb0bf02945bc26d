import type { Redis } from 'ioredis';
import { type Locks, StoreError } from 'nestjs-distributed-lock/core';
import { gate } from '../../support/gate.js';
import { MUTEX, SEMAPHORE_OF_ONE, WRITE_LOCK } from '../../contract/kinds.js';
import { rejection } from '../../support/rejection.js';
import { eventually, staysTrue } from '../../support/eventually.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import type { RedisWakeUps } from '../../../lib/stores/redis/waiting/redis.wakeups.js';
import { clientOf, useRedis } from './setting.js';
import { expectExclusion, expectWoken, inboxIn, inboxes, entriesOf, queued, scriptCalls, waiterFor, woken } from './waiting.js';

const KEY = 'order:42';
const fair = { ...woken, fair: true };
const setting = useRedis({ port: 'free' });
const fence = [`{${KEY}}:fence`];

interface Inbox {
  readonly inbox: string;
  readonly isOpen: boolean;
  /** A new one each time that it breaks. */
  readonly connection: { readonly client: Redis & { stream: { pause(): void } } };
}
const inboxOf = ({ store }: Locks): Inbox => store.mutex.wakeUps as unknown as Inbox;
const mockLogger = () => ({ warn: jest.fn(), error: jest.fn() });
const isHeard = async (inbox: string): Promise<boolean> => ((await setting.redis.pubsub('NUMSUB', inbox)) as [string, number])[1] === 1;

/** Its waiters poll, after one warning. */
async function expectPolling(locks: Locks, logger: ReturnType<typeof mockLogger>, why: RegExp): Promise<void> {
  const passOn = await waiterFor(setting, KEY, locks, { ...woken, retryInterval: 300 });
  await eventually(() => expect(logger.warn).toHaveBeenCalled());
  expect(inboxOf(locks).isOpen).toBe(false);
  await passOn();
  await expectExclusion([locks, setting.own()]);
  expect(logger.warn.mock.calls).toEqual([[expect.stringMatching(why)]]);
  expect(logger.error).not.toHaveBeenCalled();
}

describe('an inbox', () => {
  it('whose connection is half open is found by its own message, and opened again (G8)', async () => {
    // Of ioredis whatever client is tested: the test stops the reading of its socket.
    const locks = setting.overIoredis({ options: setting.server.connection });
    await expectWoken(setting, setting.own(), locks, 'other');
    const broken = inboxOf(locks).connection.client.stream;
    const passOn = await waiterFor(setting, KEY, locks, { ...woken, retryInterval: 50 });
    await queued(setting, KEY, 1);
    // The server still counts it as a listener, and nothing is read there.
    broken.pause();
    await eventually(() => inboxOf(locks).connection.client.stream !== broken && inboxOf(locks).isOpen);
    await passOn();
    await expectWoken(setting, setting.own(), locks, KEY);
  });

  it.each([false, true])(
    'that the server does not know any more is opened again when a waiter had to ask (a listener to all channels: %p) (G8)',
    async (other) => {
      if (other) await setting.client().psubscribe('*');
      const locks = setting.own();
      await expectWoken(setting, setting.own(), locks, 'other');
      const { inbox, connection } = inboxOf(locks);
      // As after a failover: connected, and to a server that sends nothing.
      await connection.client.unsubscribe(inbox);
      expect(await inboxes(setting)).not.toContain(inbox);
      const passOn = await waiterFor(setting, KEY, locks, { ...woken, retryInterval: 20 });
      await eventually(() => isHeard(inbox));
      await passOn();
    },
  );

  it('that a full server refuses has its waiters poll, with one warning, and opens when there is room (G8)', async () => {
    const logger = mockLogger();
    const [one, locks] = [setting.own(), setting.locks({ options: setting.server.connection }, { logger })];
    for (const each of [one, locks]) await each.using(KEY, () => undefined);
    setting.finally(() => setting.redis.config('SET', 'maxclients', 1_000));
    await setting.redis.config('SET', 'maxclients', 1);
    const passOn = await waiterFor(setting, KEY, locks, { ...woken, retryInterval: 300 }, one);
    await eventually(() => expect(logger.warn.mock.calls).toEqual([[expect.stringMatching(/cannot be woken and poll/)]]));
    await passOn();
    await setting.redis.config('SET', 'maxclients', 1_000);
    await eventually(() => inboxOf(locks).isOpen);
    expect(logger.warn).toHaveBeenCalledTimes(1);
  });

  describe('that opens at another server', () => {
    let elsewhere: RedisServer;
    beforeAll(async () => {
      elsewhere = await startRedis({ port: 'free' });
    });
    afterAll(() => elsewhere.stop());

    /** Locks whose inbox is opened at the other server. */
    function misled() {
      const logger = mockLogger();
      const locks = setting.overIoredis({ options: setting.server.connection }, { logger });
      const client = clientOf(locks);
      const duplicate = client.duplicate.bind(client);
      const where = { host: '127.0.0.1', port: elsewhere.port, path: undefined };
      client.duplicate = (options) => duplicate({ ...options, ...where });
      return { locks, logger, where };
    }

    it('where nothing arrives has its waiters poll, with one warning, and is opened when messages arrive (G8)', async () => {
      const { locks, logger, where } = misled();
      await expectPolling(locks, logger, /poll.*do not arrive/s);
      const passOn = await waiterFor(setting, KEY, locks);
      await queued(setting, KEY, 1);
      expect(inboxOf(locks).isOpen).toBe(false);
      where.port = setting.server.port;
      await eventually(() => inboxOf(locks).isOpen);
      await eventually(async () => expect((await entriesOf(setting, KEY))[0]).toContain(inboxOf(locks).inbox));
      await passOn();
      expect(logger.warn).toHaveBeenCalledTimes(1);
    });

    it('which is a replica, where all messages arrive, has its waiters poll: the master takes them for gone (G8)', async () => {
      const replica = elsewhere.client();
      setting.finally(async () => {
        await replica.replicaof('NO', 'ONE');
        replica.disconnect();
      });
      await replica.replicaof('127.0.0.1', setting.server.port!);
      await eventually(async () => expect(await replica.info('replication')).toMatch(/master_link_status:up/));
      const { locks, logger } = misled();
      await expectPolling(locks, logger, /poll.*do not arrive/s);
    });
  });
});

it.each([
  ['may not subscribe', ['+@all', '-subscribe', '&*']],
  ['may not publish', ['+@all', '-publish', '&*']],
  ['may use no channel', ['+@all', 'resetchannels']],
  ['may use other channels', ['+@all', 'resetchannels', '&news:*']],
])('a store without an inbox has its waiters poll, with one warning: as a user who %s', async (_what, rules) => {
  await setting.redis.acl('SETUSER', 'app', 'reset', 'on', '>pass', '~*', ...rules);
  const logger = mockLogger();
  const options = { ...setting.server.connection, username: 'app', password: 'pass' };
  await expectPolling(setting.locks({ options }, { logger }), logger, /poll.*NOPERM.*nestjs-distributed-lock:inbox/s);
});

describe.each([MUTEX, WRITE_LOCK, SEMAPHORE_OF_ONE])('a fair waiter for a $name', (kind) => {
  /** Locks whose inbox opens when the test says so. */
  function late(user: object = {}) {
    const opening = gate();
    const logger = mockLogger();
    const locks = setting.overIoredis({ options: { ...setting.server.connection, ...user } }, { logger });
    const client = clientOf(locks);
    const duplicate = client.duplicate.bind(client);
    client.duplicate = (options) => {
      const subscriber = duplicate(options);
      const connect = subscriber.connect.bind(subscriber);
      subscriber.connect = () => opening.passed.then(() => connect());
      setting.finally(() => subscriber.disconnect());
      return subscriber;
    };
    return { locks, open: opening.open, logger };
  }

  const acquire = (locks: Locks, options: object = fair) => kind.lockOf(locks, KEY).acquire(options);

  /** One after the other these queue; resolves when the last one has its entry. */
  async function line(stores: readonly Locks[], options: object = fair) {
    const order: number[] = [];
    const calls: Promise<unknown>[] = [];
    for (const [index, locks] of stores.entries()) {
      calls.push(kind.lockOf(locks, KEY).using(() => order.push(index), options));
      await queued(setting, KEY, index + 1);
    }
    return async () => {
      await Promise.all(calls);
      expect(order).toEqual(stores.map((_, index) => index));
      expect(await setting.keys()).toEqual(fence);
    };
  }

  it('that queued before its inbox was open keeps its position when it opens, is woken, and asks no more meanwhile (G7, G8)', async () => {
    const holder = await acquire(setting.own());
    const { locks, open } = late();
    const served = await line([locks, setting.own(), locks]);
    const [first, , third] = (await entriesOf(setting, KEY)).map(inboxIn);
    expect([first, third]).toEqual(['', '']);
    open();
    const known = Array(3).fill(expect.stringContaining('inbox:'));
    await eventually(async () => expect((await entriesOf(setting, KEY)).map(inboxIn)).toEqual(known));
    const before = await scriptCalls(setting);
    await staysTrue(async () => expect(await scriptCalls(setting)).toBe(before), 500);
    await holder.release();
    await served();
  });

  it('that queued before its inbox was refused keeps its position, too (G8)', async () => {
    await setting.redis.acl('SETUSER', 'deaf', 'reset', 'on', '>pass', '~*', '+@all', 'resetchannels');
    const holder = await acquire(setting.own());
    const { locks, open, logger } = late({ username: 'deaf', password: 'pass' });
    const served = await line([locks, setting.own()], { ...fair, retryInterval: 300 });
    const [before] = await entriesOf(setting, KEY);
    open();
    await eventually(() => logger.warn.mock.calls.length === 1);
    const asked = await scriptCalls(setting);
    await eventually(async () => (await scriptCalls(setting)) >= asked + 3);
    expect((await entriesOf(setting, KEY))[0]).toBe(before);
    await holder.release();
    await served();
  });

  it('whose user loses the right to listen keeps its position, and leaves no queue entry behind (G7, G8)', async () => {
    await setting.redis.acl('SETUSER', 'app', 'reset', 'on', '>pass', '~*', '&*', '+@all');
    const locks = setting.own({ ...setting.server.connection, username: 'app', password: 'pass' });
    const holder = await acquire(locks);
    const served = await line([locks, locks, locks], { ...fair, retryInterval: 300 });
    await setting.redis.acl('SETUSER', 'app', 'resetchannels');
    await eventually(async () => expect((await entriesOf(setting, KEY)).map(inboxIn)).toEqual(['', '', '']));
    await holder.release();
    await served();
  });

  it('leaves no queue entry behind when it gives up before the server knows of its inbox (G7)', async () => {
    const holder = await acquire(setting.own());
    const { locks, open } = late();
    const caller = new AbortController();
    const waiting = rejection(acquire(locks, { ...fair, signal: caller.signal }));
    await queued(setting, KEY, 1);
    // What asks with the inbox does not arrive.
    const driver = kind.driverOf(locks.store);
    const inbox = driver.wakeUps as RedisWakeUps;
    const asks = jest.spyOn(driver, 'acquire').mockImplementation(async (request) => {
      inbox.entryOf(request, request.holding);
      throw new StoreError('not sent', { transient: true });
    });
    open();
    await eventually(() => inbox.isOpen && asks.mock.calls.length > 0);
    caller.abort();
    await waiting;
    await eventually(async () => expect(await entriesOf(setting, KEY)).toEqual([]));
    await holder.release();
    expect(await setting.keys()).toEqual(fence);
  });
});
