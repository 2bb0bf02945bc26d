import { StoreError, type LockLogger, type Locks } from 'nestjs-distributed-lock/core';
import { setTimeout as pause } from 'node:timers/promises';
import type { RedisWakeUps } from '../../../lib/stores/redis/redis.wakeups.js';
import { gate } from '../../contract/gate.js';
import { MUTEX, SEMAPHORE_OF_ONE, WRITE_LOCK } from '../../contract/kinds.js';
import { rejection } from '../../contract/rejection.js';
import { eventually } from '../../support/eventually.js';
import { useRedis } from './setting.js';
import { queued, scriptCalls, woken } from './waiting.js';

const KEY = 'order:42';
const QUEUE = `{${KEY}}:queue`;
const fair = { ...woken, fair: true };

describe.each([MUTEX, WRITE_LOCK, SEMAPHORE_OF_ONE])('a fair waiter for a $name that queued before its inbox was open', (kind) => {
  const setting = useRedis();
  const places = () => setting.redis.zrange(QUEUE, '0', '-1');
  const inboxOf = (place: string) => place.split('\n')[1];
  const requests = () => scriptCalls(setting);

  /** Locks whose inbox opens when the test says so. */
  function late(user: object = {}, logger: LockLogger | false = false): { locks: Locks; open: () => void } {
    const opening = gate();
    const client = setting.client(user);
    const duplicate = client.duplicate.bind(client);
    client.duplicate = (options) => {
      const subscriber = duplicate(options);
      const connect = subscriber.connect.bind(subscriber);
      subscriber.connect = () => opening.passed.then(() => connect());
      setting.finally(() => subscriber.disconnect());
      return subscriber;
    };
    return { locks: setting.locks({ client }, { logger }), open: opening.open };
  }

  const acquire = (locks: Locks, options: object = fair) => kind.lockOf(locks, KEY).acquire(options);

  it('keeps its turn when it opens, is woken, and asks no more meanwhile (G7, G8)', async () => {
    const holder = await acquire(setting.own());
    const { locks, open } = late();
    const others = setting.own();
    const order: string[] = [];
    const call = (name: string, by: Locks) => kind.lockOf(by, KEY).using(() => order.push(name), fair);
    const calls = [call('late', locks)];
    await queued(setting, KEY, 1);
    calls.push(call('second', others));
    await queued(setting, KEY, 2);
    calls.push(call('late too', locks));
    await queued(setting, KEY, 3);
    const [first, , third] = (await places()).map(inboxOf);
    expect([first, third]).toEqual(['', '']);
    open();
    await eventually(async () => expect((await places()).map(inboxOf)).toEqual(Array(3).fill(expect.stringContaining('inbox:'))));

    const before = await requests();
    await pause(1_000);
    expect(await requests()).toBe(before);
    await holder.release();
    await Promise.all(calls);
    expect(order).toEqual(['late', 'second', 'late too']);
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });

  it('keeps its turn, too, when it is refused (G8)', async () => {
    await setting.redis.acl('SETUSER', 'deaf', 'reset', 'on', '>pass', '~*', '+@all', 'resetchannels');
    const holder = await acquire(setting.own());
    const logger = { warn: jest.fn(), error: jest.fn() };
    const { locks, open } = late({ username: 'deaf', password: 'pass' }, logger);
    const order: string[] = [];
    const call = (name: string, by: Locks) => kind.lockOf(by, KEY).using(() => order.push(name), { ...fair, retryInterval: 300 });
    const calls = [call('refused', locks)];
    await queued(setting, KEY, 1);
    calls.push(call('second', setting.own()));
    await queued(setting, KEY, 2);
    const [before] = await places();
    open();
    await eventually(() => logger.warn.mock.calls.length === 1);
    // It asks at once, and then every 10 to 50 ms.
    const asked = await requests();
    await eventually(async () => (await requests()) >= asked + 3);
    expect((await places())[0]).toBe(before);
    await holder.release();
    await Promise.all(calls);
    expect(order).toEqual(['refused', 'second']);
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });

  it('leaves no place behind when it gives up before the server knows of the inbox (G7)', async () => {
    const holder = await acquire(setting.own());
    const { locks, open } = late();
    const caller = new AbortController();
    const waiting = rejection(acquire(locks, { ...fair, signal: caller.signal }));
    await queued(setting, KEY, 1);
    // What asks with the inbox does not arrive.
    const driver = kind.driverOf(locks.store);
    const inbox = driver.wakeUps as RedisWakeUps;
    const asks = jest.spyOn(driver, 'acquire').mockImplementation(async ({ owner, ttl, holding }) => {
      inbox.placeOf(owner, ttl, holding);
      throw new StoreError('not sent', { transient: true });
    });
    open();
    await eventually(() => inbox.isOpen && asks.mock.calls.length > 0);
    caller.abort();
    await waiting;
    await eventually(async () => expect(await places()).toEqual([]));
    await holder.release();
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });
});
