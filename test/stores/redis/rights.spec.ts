// The Redis user of docs/redis.md, on a real server.
import { LockConfigError, type Locks, type Lock } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { startCluster } from '../../support/redis-cluster.js';
import { usesEveryVerb } from './every-verb.js';
import { refusedBy, useRedis } from './setting.js';
import { read } from '../../support/markdown.js';

const KEY = 'order:42';
/** A client of a Cluster gives its connections names, and asks replicas to serve reads. It goes on where it may not. */
const DISPENSABLE = ['client|setname', 'readonly'];
/** For what a busy machine adds. */
const SLACK = 2_500;

const setting = useRedis();

/** What stands behind `user <name>` in the docs, or, for the client of a Cluster, behind `cluster`. */
function ruleOf(name: string): string[] {
  return new RegExp(`^(?:user )?${name} (.+)$`, 'm').exec(read('docs/redis.md'))![1]!.split(' ');
}

const passwordIn = (rules: readonly string[]): string => rules.find((rule) => rule.startsWith('>'))!.slice(1);

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

describe('the user of the docs has the rights that', () => {
  const warn = jest.fn();

  async function asUser(): Promise<() => Locks> {
    const rules = ruleOf('locks');
    await setting.redis.acl('SETUSER', 'locks', 'reset', ...rules);
    await setting.redis.acl('LOG', 'RESET');
    await setting.redis.script('FLUSH');
    const options = { ...setting.server.connection, disconnectTimeout: 100, username: 'locks', password: passwordIn(rules) };
    return () => setting.locks({ options, requestTimeout: 5_000 }, { logger: { warn, error: warn } });
  }
  beforeEach(() => void warn.mockClear());
  afterEach(async () => {
    expect(warn).not.toHaveBeenCalled();
    expect(await refusedBy(setting.redis)).toEqual([]); // nor was any command refused
  });

  it.each<[string, (locks: Locks) => Lock]>([
    ['a mutex', (locks) => locks.mutex(KEY)],
    ['a read lock', (locks) => locks.readWriteLock(KEY, { policy: 'writers' }).read],
    ['a write lock', (locks) => locks.readWriteLock(KEY).write],
    ['a semaphore', (locks) => locks.semaphore(KEY, { permits: 3, count: 2 })],
  ])('those who wait for %s need', async (kind, lockOf) => {
    const open = await asUser();
    const isRead = kind === 'a read lock';
    const held = isRead ? open().readWriteLock(KEY).write : lockOf(open());
    const holder = await held.acquire({ keyTimeout: 60_000 });
    await holder.renew();
    const wait = lockOf(open()).acquire({ waitTimeout: 60_000, retryInterval: 60_000, minHold: 10 });
    await eventually(async () => (await setting.redis.zcard(`{${KEY}}:queue`)) === 1);
    await holder.release();
    expect(await timeOf(() => wait)).toBeLessThan(SLACK);
    await (await wait).release();
  });

  it('the nodes of a Cluster need, a replica too', async () => {
    const { nodes, addresses, stop } = await startCluster({ masters: 1, replicas: 1 });
    setting.finally(stop);
    const rules = ruleOf('locks');
    const admins = nodes.map((node) => node.client());
    for (const admin of admins) await admin.acl('SETUSER', 'locks', 'reset', ...rules, ...ruleOf('cluster'));
    const redisOptions = { username: 'locks', password: passwordIn(rules), disconnectTimeout: 100 };
    const locks = setting.locks({ cluster: addresses, clusterOptions: { redisOptions }, requestTimeout: 5_000 });
    await usesEveryVerb(locks, setting.locks({ cluster: addresses }), KEY);
    for (const admin of admins) {
      expect((await refusedBy(admin)).filter((refused) => !DISPENSABLE.includes(refused))).toEqual([]);
    }
  });

  it('one key as two kinds of lock needs, to be told so', async () => {
    const locks = (await asUser())();
    const latch = locks.countDownLatch('latch');
    await latch.trySetCount(1);
    await using _lease = await locks.semaphore(KEY, { permits: 1 }).acquire();
    const waitTimeout = 0;
    await expect(locks.acquire(KEY, { waitTimeout })).rejects.toThrow(LockConfigError);
    await expect(locks.acquire('latch', { waitTimeout })).rejects.toThrow(LockConfigError);
    await expect(locks.readWriteLock('latch').read.acquire({ waitTimeout })).rejects.toThrow(LockConfigError);
    await expect(locks.countDownLatch(KEY).getCount()).rejects.toThrow(LockConfigError);
  });

  it('those who wait for a latch need', async () => {
    const open = await asUser();
    const latch = open().countDownLatch(KEY);
    await latch.trySetCount(1);
    const wait = open().countDownLatch(KEY).await({ waitTimeout: 60_000, retryInterval: 60_000 });
    await eventually(async () => (await setting.redis.hkeys(KEY)).some((field) => field.startsWith('waiter:')));
    await latch.countDown();
    expect(await timeOf(() => wait)).toBeLessThan(SLACK);
    expect(await latch.trySetCount(0)).toBe(true);
  });
});
