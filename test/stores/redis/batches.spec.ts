import { LockTimeoutError, StoreError, type Lease, type Locks } from 'nestjs-distributed-lock/core';
import { rejection } from '../../support/rejection.js';
import { startClusterNode } from '../../support/redis-cluster.js';
import { clientOf, loadScripts, outcomeOf, useRedis } from './setting.js';
import { scriptCalls, woken } from './waiting.js';

const setting = useRedis();

describe('what is asked of the server in one iteration of the event loop', () => {
  it('goes out in few requests, none of which holds it up for long, and each gets its own answer (G1, G2)', async () => {
    const locks = setting.own();
    await loadScripts(setting.redis);
    const keys = Array.from({ length: 200 }, (_, i) => `key:${i}`);
    for (const key of keys.filter((_, i) => i % 3 === 0)) await setting.redis.set(key, 'stranger');
    await locks.using('connected', () => undefined);
    const before = await scriptCalls(setting);
    const leases = await Promise.all(keys.map((key) => locks.tryAcquire(key, woken)));
    expect((await scriptCalls(setting)) - before).toBe(Math.ceil(200 / 64));
    for (const [i, lease] of leases.entries()) {
      expect(lease === null).toBe(i % 3 === 0);
      if (lease) expect(await setting.redis.get(keys[i]!)).toBe(lease.owner);
    }
    const held = leases.filter((lease) => lease !== null);
    expect(await Promise.all(held.map((lease) => lease.release()))).toEqual(Array(133).fill(true));
    expect((await scriptCalls(setting)) - before).toBe(Math.ceil(200 / 64) + Math.ceil(133 / 64));
  });

  it('is answered where a server refuses keys of several slots in one request, as a proxy before shards does', async () => {
    const node = await startClusterNode();
    setting.finally(() => node.stop());
    const locks = setting.own(node.connection);
    const keys = Array.from({ length: 20 }, (_, i) => `key:${i}`);
    const leases = await Promise.all(keys.map((key) => locks.acquire(key, woken)));
    await Promise.all(leases.map((lease) => lease.renew()));
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual(keys.map(() => true));
  });

  it('is answered each though another one fails (G6)', async () => {
    const locks = setting.own();
    await setting.redis.rpush('list', 'a', 'value');
    const [a, list, b] = await Promise.all(['a', 'list', 'b'].map((key) => outcomeOf(locks.acquire(key, woken))));
    expect([a!.error, b!.error]).toEqual([undefined, undefined]);
    expect(list!.error).toBeInstanceOf(StoreError);
    expect(list!.error).toMatchObject({ key: 'list', transient: false, message: expect.stringMatching(/^Redis: WRONGTYPE/) });

    const unknown = jest.fn();
    locks.on('unknown', unknown);
    await setting.redis.set('{a}:queue', 'no queue');
    await Promise.all([a!.value!.release(), b!.value!.release()]);
    expect(unknown.mock.calls).toEqual([[expect.objectContaining({ key: 'a', operation: 'release' })]]);
    expect(await setting.redis.get('b')).toBeNull();
  });

  it('is answered each though the server refuses a command in the midst of it (G4)', async () => {
    await setting.redis.acl('SETUSER', 'app', 'reset', 'on', '>pass', '~*', '&*', '+@all', '-zpopmin');
    const { mutex } = setting.own({ ...setting.server.connection, username: 'app', password: 'pass' }).store;
    const keys = ['a', 'b'];
    for (const key of keys) await mutex.acquire({ key, owner: 'me', ttl: 300_000, tokens: 1, queue: false });
    // Its release would pop the first one of the queue.
    await setting.redis.zadd('{b}:queue', 1, 'other\n\n1000');
    const replies = await Promise.allSettled(keys.map((key) => mutex.release({ key, owner: 'me', keepFor: 0 })));
    expect(replies).toEqual([
      { status: 'fulfilled', value: 'released' },
      { status: 'rejected', reason: expect.any(StoreError) },
    ]);
  });
});

// The test runner fails a test whose rejections nobody handles.
describe('a reply that no script gives', () => {
  const patient = { keyTimeout: 60_000, waitTimeout: 600_000, retryInterval: 100 };
  /** What a program may do with a lock, each by a request of its own. */
  const CALLS: Record<string, (locks: Locks) => Promise<unknown>> = {
    'an acquire': (locks) => locks.acquire('mutex', patient),
    'a tryAcquire': (locks) => locks.tryAcquire('try'),
    'a read lock': (locks) => locks.readWriteLock('doc').read.acquire(patient),
    'a write lock': (locks) => locks.readWriteLock('doc:2').write.acquire(patient),
    'a permit': (locks) => locks.semaphore('pool', { permits: 2 }).acquire(patient),
    'a new count': (locks) => locks.countDownLatch('latch').trySetCount(2),
    'a count': (locks) => locks.countDownLatch('latch').countDown(),
    'a look at a latch': (locks) => locks.countDownLatch('latch').getCount(),
    'a wait for a latch': (locks) => locks.countDownLatch('latch').await({ waitTimeout: 600_000 }),
    'a look for the leader': (locks) => locks.leaderElection('boss').leader(),
  };
  const GARBAGE: [string, unknown][] = [
    ['a text', 'QUEUED'],
    ['nothing', null],
    ['undefined', undefined],
    ['a number', 7],
    ['an empty list', []],
    ['a list of the wrong length', ['1', '2', '3', '4', '5', '6', '7']],
    ['a list of a text', ['NaN']],
    ['a list of a number that is too large', ['9007199254740993']],
    ['a number that is too large', '9007199254740993'],
    ['a list of nothing', [null]],
    ['a list of lists', [[[]]]],
    ['an object', {}],
  ];

  it.each(GARBAGE)('but %s grants nothing, and fails the call (G1, G9)', async (_what, reply) => {
    for (const [what, call] of Object.entries(CALLS)) {
      const locks = setting.overIoredis({ options: setting.server.connection });
      const client = clientOf(locks);
      Object.assign(client, { evalsha: () => Promise.resolve(reply) });
      const { error, value } = await outcomeOf(call(locks));
      // Where the reply is one after all: a token, a count that is left, a latch that is not there.
      const isAnswer = [
        reply === 7 && (value as Lease | undefined)?.fencingToken === 7,
        what === 'a count' && reply === 7 && value === 7,
        what === 'a look at a latch' && Array.isArray(reply) && reply.length === 0 && value === 0,
        what === 'a wait for a latch' && Array.isArray(reply) && reply.length === 0 && value === undefined && !error,
      ].some(Boolean);
      if (!isAnswer) {
        expect([what, error]).toEqual([what, expect.any(StoreError)]);
        expect(error).toMatchObject({ transient: false });
      }
      await locks.close();
    }
  });

  it('to a renewal is neither a success nor a loss, and is asked for again (G4)', async () => {
    const locks = setting.overIoredis({ options: setting.server.connection });
    const client = clientOf(locks);
    const lost = jest.fn();
    locks.on('lost', lost);
    const leases = await Promise.all(['a', 'b', 'c'].map((key) => locks.acquire(key, patient)));
    const evalsha = client.evalsha.bind(client);
    for (const [what, reply] of GARBAGE) {
      Object.assign(client, { evalsha: () => Promise.resolve(reply) });
      for (const lease of leases) expect([what, await rejection(lease.renew())]).toEqual([what, expect.any(StoreError)]);
      Object.assign(client, { evalsha });
      await Promise.all(leases.map((lease) => lease.renew()));
    }
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual([true, true, true]);
    expect(lost).not.toHaveBeenCalled();
  });

  it.each([undefined, null, 'refused', { message: 'refused' }])('but an error that is %p is a StoreError, too', async (reason) => {
    const locks = setting.overIoredis({ options: setting.server.connection });
    const client = clientOf(locks);
    Object.assign(client, { evalsha: () => Promise.reject(reason as Error) });
    const error = await rejection(locks.acquire('key', { waitTimeout: 100, retryInterval: 50 }));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).not.toBeInstanceOf(LockTimeoutError);
    delete (client as Partial<typeof client>).evalsha;
  });
});

it('a multi-lock of one key by two stores that lead to one server times out, and gives everything back', async () => {
  const [one, other] = [setting.own(), setting.own()];
  const lock = one.multiLock(['before', one.mutex('key'), other.mutex('key')]);
  expect(await rejection(lock.acquire({ waitTimeout: 300 }))).toBeInstanceOf(LockTimeoutError);
  await setting.own().multiLock(['before', 'key']).acquire(woken);
});
