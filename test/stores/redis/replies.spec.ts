import { LockTimeoutError, StoreError, type Lease, type Locks } from 'nestjs-distributed-lock/core';
import { outcomeOf, SLACK, useRedis } from './setting.js';

const patient = { keyTimeout: 2_000, waitTimeout: 5_000, retryInterval: 100 };

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
  'a wait for a latch': (locks) => locks.countDownLatch('latch').await({ waitTimeout: 1_000 }),
  'a look for the leader': (locks) => locks.leaderElection('boss').leader(),
};

// The test runner fails a test whose rejections nobody handles.
describe('a reply that no script gives', () => {
  const setting = useRedis();
  it('because a client is lent inside MULTI is a StoreError at once for each caller of that turn (G1, G9)', async () => {
    const client = setting.client();
    await client.ping();
    const locks = setting.locks({ client });
    await client.multi({ pipeline: false });
    const calls = Array.from({ length: 8 }, (_, i) => outcomeOf(locks.acquire(`key:${i}`, patient)));
    for (const { error, took, value } of await Promise.all(calls)) {
      expect(value).toBeUndefined();
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ transient: false, message: expect.stringMatching(/QUEUED.*MULTI/) });
      expect(took).toBeLessThan(SLACK);
    }
    await client.exec();
    // What was done by then has been given up behind it.
    expect(await setting.keys('key:*')).toEqual([]);
  });

  const garbage: [string, unknown][] = [
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

  it.each(garbage)('but %s grants nothing, hangs nobody and goes unhandled nowhere (G1, G9)', async (_what, reply) => {
    for (const [what, call] of Object.entries(CALLS)) {
      const client = setting.client();
      const locks = setting.locks({ client }, { shutdownTimeout: 0 });
      Object.assign(client, { evalsha: () => Promise.resolve(reply) });
      const { error, value, took } = await outcomeOf(call(locks));
      // Where the reply is one after all: a token, a count that is left, a latch that is not there.
      const isAnswer = [
        reply === 7 && (value as Lease | undefined)?.fencingToken === 7,
        what === 'a count' && reply === 7 && value === 7,
        what === 'a look at a latch' && Array.isArray(reply) && reply.length === 0 && value === 0,
        what === 'a wait for a latch' && Array.isArray(reply) && reply.length === 0 && value === undefined && !error,
      ].some(Boolean);
      if (!isAnswer) expect([what, error]).toEqual([what, expect.any(StoreError)]);
      if (!isAnswer) expect(error).toMatchObject({ transient: false });
      expect(took).toBeLessThan(SLACK);
      await locks.close();
    }
  });

  it('to a renewal is neither a success nor a loss, and is asked for again (G4)', async () => {
    const client = setting.client();
    const locks = setting.locks({ client });
    const leases = await Promise.all(['a', 'b', 'c'].map((key) => locks.acquire(key, { keyTimeout: 600 })));
    const evalsha = client.evalsha.bind(client);
    for (const reply of garbage.map(([, reply]) => reply)) {
      const asked = new Promise<void>((resolve) => {
        Object.assign(client, { evalsha: () => (resolve(), Promise.resolve(reply)) });
      });
      await asked;
      Object.assign(client, { evalsha });
      const renewed = leases.map((lease) => lease.renew());
      await Promise.all(renewed);
    }
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual([true, true, true]);
  });

  it('but an error that is none is a StoreError, too', async () => {
    for (const reason of [undefined, null, 'refused', { message: 'refused' }]) {
      const client = setting.client();
      const locks = setting.locks({ client });
      Object.assign(client, { evalsha: () => Promise.reject(reason as Error) });
      const { error } = await outcomeOf(locks.acquire('key', { waitTimeout: 100, retryInterval: 50 }));
      expect(error).toBeInstanceOf(StoreError);
      expect(error).not.toBeInstanceOf(LockTimeoutError);
    }
  });
});

describe('a client that does not tell its status, as stand-ins for tests do', () => {
  const setting = useRedis();

  it('counts as ready', async () => {
    const client = setting.client();
    await client.ping();
    const silent = new Proxy(client, {
      get(target, name) {
        if (name === 'status') return undefined;
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const locks = setting.locks({ client: silent });
    expect(await locks.using('key', () => 'done')).toBe('done');
  });
});
