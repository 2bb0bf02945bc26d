import type { Redis } from 'ioredis';
import { LockConfigError, StoreError } from 'nestjs-distributed-lock/core';
import { mkdirSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { lua } from '../../../lib/stores/redis/scripts/redis.script.js';
import { MUTEX, semaphoreOf, WRITE_LOCK } from '../../contract/kinds.js';
import { rejection } from '../../support/rejection.js';
import { eventually } from '../../support/eventually.js';
import { read } from '../../support/markdown.js';
import { startCluster } from '../../support/redis-cluster.js';
import { startRedis } from '../../support/redis-server.js';
import { usesEveryVerb } from './every-verb.js';
import { clientOf, endOf, outcomeOf, refusedBy, useRedis } from './setting.js';
import { woken } from './waiting.js';

const KEY = 'order:42';
const setting = useRedis({ password: 'secret' });
const as = (username: string, password = 'pass') => ({ ...setting.server.connection, username, password });
const allow = (user: string, ...rules: string[]) =>
  setting.redis.acl('SETUSER', user, 'on', '>pass', 'resetkeys', 'nocommands', '&*', ...rules);

const KINDS = [MUTEX, WRITE_LOCK, semaphoreOf(2)];

describe('a server that refuses for good', () => {
  beforeEach(async () => {
    await allow('no-scripts', '+@all', '-@scripting', '~*');
    await allow('no-keys', '+@all', '~other:*');
    await allow('no-eval', '+@all', '-eval', '~*');
  });

  it.each([
    ['NOAUTH', 'no password', () => ({ ...setting.server.connection, password: undefined })],
    ['WRONGPASS', 'a wrong password', () => ({ ...setting.server.connection, password: 'guess' })],
    ['NOPERM', 'no right to run scripts', () => as('no-scripts')],
    ['NOPERM', 'no right to the key', () => as('no-keys')],
    ['NOPERM', 'a right to run known scripts only', () => as('no-eval')],
  ])('with %s, for %s: is a StoreError, though the wait has no end (G9)', async (code, _, connection) => {
    await setting.redis.script('FLUSH');
    const body = jest.fn();
    const error = await rejection(setting.own(connection()).using(KEY, body, { waitTimeout: Infinity }));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ transient: false, code: 'LOCK_STORE', message: expect.stringContaining(code) });
    expect(body).not.toHaveBeenCalled();
    expect(await setting.keys()).toEqual([]);
  });

  it('is asked as before once it allows', async () => {
    const locks = setting.own(as('no-keys'));
    await expect(locks.acquire(KEY)).rejects.toThrow('NOPERM');
    await allow('no-keys', '+@all', '~*');
    expect(await (await locks.acquire(KEY)).release()).toBe(true);
  });
});

describe('one key that the user may not use', () => {
  const ours = (names: string[]) => names.flatMap((name) => [`~*:${name}`, `~{*:${name}}:*`]);

  it.each(KINDS)('fails no other acquire and no other release of the same iteration: $name (G4)', async ({ name: kind, lockOf }) => {
    await allow('app', '+@all', ...ours(['a', 'b', 'c', 'd']));
    const locks = setting.own(as('app'));
    const keys = ['a', 'forbidden', 'b', 'c', 'forbidden too', 'd'].map((name) => `${kind}:${name}`);
    const outcomes = await Promise.all(keys.map((key) => outcomeOf(lockOf(locks, key).acquire(woken))));
    expect(outcomes.map(({ value }) => value !== undefined)).toEqual([true, false, true, true, false, true]);
    for (const { error } of outcomes.filter(({ value }) => !value))
      expect(error).toMatchObject({ name: 'StoreError', transient: false, message: expect.stringContaining('NOPERM') });
    const leases = outcomes.flatMap(({ value }) => value ?? []);
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual([true, true, true, true]);
  });

  it('any more loses no other lease, and its own is unknown until it ends (G4)', async () => {
    await allow('app', '+@all', ...ours(['a', 'b', 'c', 'd']));
    const all = await Promise.all(
      KINDS.map(async ({ name: kind, lockOf }) => {
        const locks = setting.own(as('app'));
        const [unknown, lost] = [jest.fn(), jest.fn()];
        locks.on('unknown', ({ key, error }) => unknown(key, error));
        locks.on('lost', ({ key }) => lost(key));
        const keys = ['a', 'b', 'c', 'd'].map((name) => `${kind}:${name}`);
        const leases = await Promise.all(keys.map((key) => lockOf(locks, key).acquire({ keyTimeout: 6_000 })));
        return { key: `${kind}:c`, leases, unknown, lost };
      }),
    );
    await allow('app', '+@all', ...ours(['a', 'b', 'd']));
    for (const { key, leases, unknown, lost } of all) {
      await eventually(() => lost.mock.calls.length > 0);
      expect(lost.mock.calls).toEqual([[key]]);
      expect(new Set(unknown.mock.calls.map(([each]) => each))).toEqual(new Set([key]));
      expect(unknown).toHaveBeenCalledWith(key, expect.any(StoreError));
      expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual([true, true, false, true]);
    }
  });
});

it('a server that is full renews the leases of all kinds, and takes them back (G4)', async () => {
  const locks = setting.own();
  const lost = jest.fn();
  locks.on('lost', lost);
  const take = (name: string, options: object) =>
    Promise.all(KINDS.map((kind) => kind.lockOf(locks, `${kind.name}:${name}`).acquire({ ...woken, ...options })));
  const short = await take('a', { keyTimeout: 6_000 });
  const long = await take('b', {});
  const kept = await take('c', { minHold: 60_000 });
  const foreign = await take('d', {});
  // A second holder of the same key, whose lease ends later than the one that is renewed.
  long.push(await locks.semaphore(short[2]!.key, { permits: 2 }).acquire({ ...woken, reentrant: false }));
  const ends = short.map(endOf);
  setting.finally(() => setting.redis.config('SET', 'maxmemory', 0));
  await setting.redis.config('SET', 'maxmemory', 1);
  await expect(setting.redis.set('x', '1')).rejects.toThrow('OOM');
  await eventually(() => short.every((lease, i) => endOf(lease) > ends[i]! + 100));
  expect(lost).not.toHaveBeenCalled();
  // Each by itself: behind a release that freed memory the server would allow what it refuses first.
  for (const lease of kept) {
    expect(await lease.release()).toBe(true);
    const left = await setting.redis.pttl(lease.key);
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(60_000);
  }
  expect(await Promise.all([...short, ...long].map((lease) => lease.release()))).not.toContain(false);
  for (const { key } of [...short, ...long]) expect(await setting.redis.exists(key)).toBe(0);
  // What is not ours is lost, and no outage.
  const { mutex, readWriteLock, semaphore } = locks.store;
  for (const [i, driver] of [mutex, readWriteLock!.write, semaphore!].entries())
    expect(await driver.release({ key: foreign[i]!.key, owner: 'nobody', keepFor: 0 })).toBe('lost');
  for (const lease of foreign) expect(await lease.release()).toBe(true);
});

describe('a server that is not the master any more', () => {
  afterEach(() => setting.redis.replicaof('NO', 'ONE'));

  it.each(['acquire', 'release'] as const)('says so to the client that runs %s, which may look for the new one', async (script) => {
    await setting.redis.set(KEY, 'owner');
    await setting.redis.replicaof('127.0.0.1', 1);
    const keys = script === 'acquire' ? [KEY, `{${KEY}}:fence`, `{${KEY}}:queue`] : [KEY, `{${KEY}}:queue`];
    const args = script === 'acquire' ? ['owner', 1000] : ['owner'];
    await expect(setting.redis.eval(lua(`mutex/${script}`, 1000), keys.length, ...keys, ...args)).rejects.toThrow(/^READONLY/);
  });

  it("has a store's own client begin one new connection, however many requests are refused, and leave no listener behind (G7)", async () => {
    const locks = setting.overIoredis({ options: setting.server.connection });
    await locks.using(KEY, () => undefined);
    const { stream } = clientOf(locks) as Redis & { stream: Socket };
    const before = stream.listenerCount('close');
    await setting.redis.replicaof('127.0.0.1', 1);
    // Each is a command of its own, and all are under way together.
    const calls = Array.from({ length: 50 }, (_, i) => rejection(locks.countDownLatch(`latch:${i}`).trySetCount(1, { waitTimeout: 0 })));
    for (const error of await Promise.all(calls)) expect(error).toBeInstanceOf(StoreError);
    await setting.redis.replicaof('NO', 'ONE');
    await locks.using(KEY, () => undefined, woken);
    expect(stream.destroyed).toBe(true);
    // One for the one time that it was closed.
    expect(stream.listenerCount('close')).toBeLessThanOrEqual(before + 1);
  });
});

describe('a server that refuses for now', () => {
  const rdb = (): string => join(dirname(setting.server.path!), 'dump.rdb');
  const REFUSALS: [string, { begin: () => unknown; end: () => unknown }][] = [
    ['OOM', { begin: () => setting.redis.config('SET', 'maxmemory', 1), end: () => setting.redis.config('SET', 'maxmemory', 0) }],
    ['READONLY', { begin: () => setting.redis.replicaof('127.0.0.1', 1), end: () => setting.redis.replicaof('NO', 'ONE') }],
    [
      'MISCONF',
      {
        // The snapshot cannot take the place of a directory.
        async begin() {
          mkdirSync(join(rdb(), 'in-the-way'), { recursive: true });
          await setting.redis.set('unsaved', 1);
          await setting.redis.config('SET', 'save', '3600 1');
          await setting.redis.bgsave();
          // The state of the save before it may be the same: it must be over.
          await eventually(async () => {
            const state = await setting.redis.info('persistence');
            return state.includes('rdb_bgsave_in_progress:0') && state.includes('rdb_last_bgsave_status:err');
          });
        },
        async end() {
          rmSync(rdb(), { recursive: true, force: true });
          await setting.redis.config('SET', 'save', '');
        },
      },
    ],
  ];

  describe.each(REFUSALS)('with %s', (code, refusal) => {
    afterEach(() => refusal.end());

    it('is a StoreError when the wait timeout has ended, not before (G9)', async () => {
      const locks = setting.own();
      await refusal.begin();
      const outcomes: { error?: unknown; took: number }[] = [];
      // With READONLY, the client connects once more from time to time, which may be the last that a call sees.
      await eventually(async () => {
        const outcome = await outcomeOf(() => locks.acquire(KEY, { waitTimeout: 400, retryInterval: 50 }));
        outcomes.push(outcome);
        expect((outcome.error as StoreError).message + String((outcome.error as StoreError).cause)).toContain(code);
      });
      for (const { error, took } of outcomes) {
        expect(error).toBeInstanceOf(StoreError);
        expect(error).toMatchObject({ transient: true });
        expect(took).toBeGreaterThanOrEqual(400 - 5);
      }
    });

    it('is reported in one line, with what to do, and is not healthy until it grants a lock (G9)', async () => {
      const warn = jest.fn<void, [string]>();
      const locks = setting.locks({ options: setting.server.connection, requestTimeout: 5_000 }, { logger: { warn, error: warn } });
      await locks.using(KEY, () => undefined, woken);
      await refusal.begin();
      const call = () => rejection(locks.acquire(KEY, { waitTimeout: 400, retryInterval: 50 }));
      await eventually(async () => expect(await call()).toMatchObject({ isRefusal: true }));
      const error = { message: expect.stringMatching(`^Redis: ${code} `) };
      await eventually(async () => expect(await locks.health()).toMatchObject({ isUp: false, error }));
      expect(warn.mock.calls).toEqual([[expect.stringMatching(`^Redis refuses requests: ${code} .+\\. (It is|Give|Look) .*[^.]$`)]]);
      await refusal.end();
      await eventually(async () => expect(await locks.health()).toMatchObject({ isUp: true, error: undefined }));
      expect(warn.mock.calls.slice(1)).toEqual([['Redis grants locks again [NDL_STORE_BACK]']]);
      // From now on it changes nothing again.
      const acquire = jest.spyOn(locks.store.mutex, 'acquire');
      await locks.health();
      expect(acquire).not.toHaveBeenCalled();
      await eventually(async () => (await setting.redis.exists('nestjs-distributed-lock:health')) === 0);
    });

    it('has the key freed in the background, where it refused the release (G7, G10)', async () => {
      const work = async () => {
        await refusal.begin();
        return 'result';
      };
      expect(await setting.own().using(KEY, work, woken)).toBe('result');
      await refusal.end();
      await eventually(async () => (await setting.redis.exists(KEY)) === 0);
    });
  });

  it('since it is loading is waited for, and then used (G9)', async () => {
    const slowly = ['--key-load-delay', '5000', '--loading-process-events-interval-bytes', '1024'];
    const server = await startRedis({ args: slowly });
    setting.finally(() => server.stop());
    const redis = server.client({ enableReadyCheck: false });
    const isLoading = async () => (await redis.info('persistence')).includes('loading:1');
    await redis.eval(`for i = 1, 4000 do redis.call('SET', 'filler:' .. i, string.rep('x', 64)) end`, 0);
    await redis.save();
    const locks = setting.own(server.connection);
    await locks.using('warm-up', () => undefined);
    const impatient = setting.own(server.connection, { requestTimeout: 2_000 });

    const restarted = server.restart();
    await eventually(isLoading);
    const call = locks.acquire(KEY, { ...woken, retryInterval: 50 });
    const error = await rejection(impatient.acquire(KEY, { waitTimeout: 100, retryInterval: 50 }));
    expect(await isLoading()).toBe(true);
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ transient: true });
    await redis.config('SET', 'key-load-delay', 0);
    await restarted;
    expect(await (await call).release()).toBe(true);
  });
});

describe('the user of docs/redis.md has the rights that', () => {
  /** A client of a Cluster gives its connections names, and asks replicas to serve reads. It goes on where it may not. */
  const DISPENSABLE = ['client|setname', 'readonly'];
  /** What stands behind `user <name>` in the docs, or, for the client of a Cluster, behind `cluster`. */
  const ruleOf = (name: string) => new RegExp(`^(?:user )?${name} (.+)$`, 'm').exec(read('docs/redis.md'))![1]!.split(' ');
  const passwordIn = (rules: readonly string[]) => rules.find((rule) => rule.startsWith('>'))!.slice(1);

  it('all locks need, also one key as two kinds of lock, which is an error', async () => {
    const warn = jest.fn();
    await setting.redis.acl('SETUSER', 'locks', 'reset', ...ruleOf('locks'));
    await setting.redis.acl('LOG', 'RESET');
    await setting.redis.script('FLUSH');
    const options = as('locks', passwordIn(ruleOf('locks')));
    const open = () => setting.locks({ options, requestTimeout: 5_000 }, { logger: { warn, error: warn } });
    await usesEveryVerb(open(), open(), KEY);
    const locks = open();
    await locks.using('kept', () => undefined, { ...woken, minHold: 10 });
    await locks.countDownLatch('latch').trySetCount(1);
    await using _lease = await locks.semaphore('pool', { permits: 1 }).acquire(woken);
    const wrong = [
      locks.acquire('pool'),
      locks.acquire('latch'),
      locks.readWriteLock('latch').read.acquire(),
      locks.countDownLatch('pool').getCount(),
    ];
    for (const call of wrong) expect(await rejection(call)).toBeInstanceOf(LockConfigError);
    expect(warn).not.toHaveBeenCalled();
    expect(await refusedBy(setting.redis)).toEqual([]);
  });

  it('the nodes of a Cluster need, a replica too', async () => {
    const { nodes, addresses, stop } = await startCluster({ masters: 1, replicas: 1 });
    setting.finally(stop);
    const rules = ruleOf('locks');
    const admins = nodes.map((node) => node.client());
    for (const admin of admins) await admin.acl('SETUSER', 'locks', 'reset', ...rules, ...ruleOf('cluster'));
    const redisOptions = { username: 'locks', password: passwordIn(rules) };
    const locks = setting.locks({ cluster: addresses, clusterOptions: { redisOptions }, requestTimeout: 5_000 });
    await usesEveryVerb(locks, setting.locks({ cluster: addresses, requestTimeout: 5_000 }), KEY);
    for (const admin of admins) {
      expect((await refusedBy(admin)).filter((refused) => !DISPENSABLE.includes(refused))).toEqual([]);
    }
  });
});
