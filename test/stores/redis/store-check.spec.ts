// What the log and the check of a store say about a server.
import type { RedisOptions } from 'ioredis';
import { StoreError, type Locks, type LocksOptions } from 'nestjs-distributed-lock/core';
import type { RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { rejection } from '../../support/rejection.js';
import { startCluster } from '../../support/redis-cluster.js';
import { eventually, staysTrue } from '../../support/eventually.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { outcomeOf, useRedis } from './setting.js';
import { woken } from './waiting.js';

const REQUEST_TIMEOUT = 2_000;
const setting = useRedis();
let proxy: TcpProxy;

beforeEach(async () => {
  proxy = await setting.proxy();
  setting.finally(() => proxy.heal());
});

function open(store: RedisStoreOptions, options: LocksOptions = {}) {
  const lines: string[] = [];
  const write = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
  const logger = { warn: write('warn'), error: write('error'), log: write('log') };
  return { locks: setting.overIoredis({ requestTimeout: REQUEST_TIMEOUT, ...store }, { logger, ...options }), lines };
}
const use = ({ locks: opened }: { locks: Locks }) => opened.using('key', () => 5, woken);
const AWAY = /^warn Redis does not answer since \d{4}-\d\d-\d\dT[\d:.]+Z: .+; locks wait \[NDL_STORE_AWAY\]$/;
const BACK = /^warn Redis answers again after (\d+ ms|\d+(\.\d)? s) \[NDL_STORE_BACK\]$/;

describe('the log', () => {
  it('names a server that goes away once, also while nothing is held, and once when it is back', async () => {
    const opened = open({ options: proxy.connection });
    await use(opened);
    proxy.refuse();
    proxy.cut();
    await eventually(() => opened.lines.length > 0);
    await staysTrue(() => expect(opened.lines).toEqual([expect.stringMatching(AWAY)]), 500);
    expect(opened.lines[0]).toMatch(/Z: connect ECONNREFUSED .+; locks wait \[NDL_STORE_AWAY\]$/);
    await proxy.heal();
    await eventually(() => opened.lines.length > 1);
    await use(opened);
    await staysTrue(() => expect(opened.lines.slice(1)).toEqual([expect.stringMatching(BACK)]));
  });

  it('does not name a connection that breaks while it is idle and is back, nor one that is closed', async () => {
    const opened = open({ options: proxy.connection });
    await use(opened);
    proxy.cut();
    await use(opened);
    await opened.locks.close();
    await staysTrue(() => expect(opened.lines).toEqual([]), REQUEST_TIMEOUT + 500);
  });
});

describe('the check of a store', () => {
  const checked = async (store: RedisStoreOptions, name?: string) => {
    const opened = open(store);
    const { error } = await outcomeOf(opened.locks.checkStore(name));
    return { ...opened, error };
  };
  const ANSWERS = /^log Store "orders": (Redis|Valkey) \d+\.\d+\.\d+ at \S+\/0 answers in \d+ ms; waiters are woken$/;

  it('says which server answers, what it can do, and whether it evicts locks, and leaves nothing behind', async () => {
    expect((await checked({ options: setting.server.connection }, 'orders')).lines).toEqual([expect.stringMatching(ANSWERS)]);
    await setting.redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    setting.finally(() => setting.redis.config('SET', 'maxmemory-policy', 'noeviction'));
    const { lines, error } = await checked({ options: setting.server.connection }, 'orders');
    expect(error).toBeUndefined();
    expect(lines).toEqual([
      expect.stringMatching(ANSWERS),
      expect.stringMatching(/^warn Store "orders": maxmemory-policy: allkeys-lru\. CONFIG SET maxmemory-policy noeviction/),
    ]);
    expect(await setting.keys()).toEqual([]);
  });

  it('says no version to a user who may not ask for it, and nothing else', async () => {
    await setting.redis.acl('SETUSER', 'shop', 'on', '>secret', '~shop:*', '~{shop:*', 'resetchannels', '+@all', '-info');
    const options = { ...setting.server.connection, username: 'shop', password: 'secret', enableReadyCheck: false };
    const { locks: opened, lines } = open({ options }, { namespace: 'shop:' });
    await opened.checkStore();
    expect(lines).toEqual([expect.stringMatching(/^log Redis at \S+\/0, namespace "shop:", answers in \d+ ms; waiters are woken$/)]);
  });

  it('names what a user may not do, in one line each', async () => {
    await setting.redis.acl('SETUSER', 'shop', 'on', '>secret', '~*', '+@all');
    await setting.redis.acl('SETUSER', 'reports', 'on', '>secret', '~reports:*', '+@all');
    const users = [
      { username: 'shop', password: 'wrong' },
      { username: 'reports', password: 'secret' },
    ];
    const opened = await Promise.all(users.map((user) => checked({ options: { ...setting.server.connection, ...user } })));
    await setting.redis.config('SET', 'requirepass', 'secret');
    setting.finally(() => setting.redis.config('SET', 'requirepass', ''));
    opened.push(await checked({ options: setting.server.connection }));
    for (const { error } of opened) expect(error).toMatchObject({ name: 'StoreError', transient: false });
    const refused = (why: string) => [expect.stringMatching(new RegExp(`^warn Redis refuses requests: ${why} .+`))];
    await staysTrue(() => {
      expect(opened.map(({ lines }) => lines)).toEqual([refused('WRONGPASS'), refused('NOPERM'), refused('NOAUTH')]);
    }, REQUEST_TIMEOUT + 500);
    expect(opened[0]!.lines[0]).toMatch(/: WRONGPASS [^.]+\. Check the user and the password \[NDL_STORE_REFUSES\]$/);
  });

  it.each([
    ['replica', /^It is a replica: use the address of the master, or sentinels/],
    ['node of a Cluster that has the key of the check', /^It is a node of a Cluster: redisStore/],
    ['node of a Cluster that has not', /^MOVED .+\. It is a node of a Cluster: redisStore/],
  ])('is a refusal by a %s, and no key is granted', async (what, reason) => {
    let options: RedisOptions = setting.server.connection;
    if (what === 'replica') {
      setting.finally(() => setting.redis.replicaof('NO', 'ONE'));
      await setting.redis.replicaof('127.0.0.1', 1);
    } else {
      const cluster = await startCluster({ masters: 2 });
      setting.finally(() => cluster.stop());
      options = cluster.nodes[what.endsWith('not') ? 0 : 1]!.connection;
    }
    const { lines, error, locks: refused } = await checked({ options, requestTimeout: 5_000 }, 'orders');
    const start = 'warn Store "orders": Redis refuses requests: ';
    expect(error).toMatchObject({ name: 'StoreError', isRefusal: true });
    expect(lines).toEqual([expect.stringContaining(start)]);
    expect(lines[0]!.slice(start.length)).toMatch(reason);
    expect(await refused.health()).toMatchObject({ isUp: false });
    // Some of them belong to this node.
    const keys = Array.from({ length: 8 }, (_, i) => `key:${i}`);
    const unknown = jest.fn();
    refused.on('unknown', unknown);
    for (const key of keys) {
      const refusal = await rejection(refused.acquire(key, { waitTimeout: 0 }));
      expect(refusal).toBeInstanceOf(StoreError);
      // A replica may be the master soon.
      if (what !== 'replica') expect(refusal).toMatchObject({ isRefusal: true, isUnsent: true });
    }
    await refused.close();
    // Nothing was taken, so that there is nothing to release.
    if (what !== 'replica') expect(unknown).not.toHaveBeenCalled();
  });

  it('names a server that cannot be reached in one line, and its return', async () => {
    proxy.refuse();
    const opened = await checked({ options: proxy.connection });
    expect(opened.error).toMatchObject({ transient: true });
    const away = /^warn Redis cannot be reached: Redis is not connected within \d+ ms: .+; locks wait until it answers \[NDL_STORE_AWAY\]$/;
    await staysTrue(() => expect(opened.lines).toEqual([expect.stringMatching(away)]), 500);
    await proxy.heal();
    await use(opened);
    await eventually(() => expect(opened.lines.slice(1)).toEqual([expect.stringMatching(BACK)]));
  });
});
