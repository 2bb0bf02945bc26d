import { QuorumError, type Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { rejection } from '../../support/rejection.js';
import { eventually } from '../../support/eventually.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { long, useQuorum } from './setting.js';

const setting = useQuorum(3);
/** A slow server answers within it, long after the memberTimeout. */
const storeOf = ({ connection }: TcpProxy) => redisStore({ options: connection, requestTimeout: 60_000 });
const FREE = [null, null, null];

describe('a server that is slow', () => {
  let proxies: TcpProxy[];
  let one: Locks;
  let other: Locks;
  beforeEach(async () => {
    proxies = await setting.proxies();
    [one, other] = [0, 1].map(() => setting.open({ quarantine: 0, memberTimeout: 1_000 }, proxies.map(storeOf))) as [Locks, Locks];
    for (const locks of [one, other]) await locks.using(setting.newKey(), () => undefined, long);
  });

  /** How many wait at all servers. */
  async function queued(key: string): Promise<number> {
    const lengths = setting.servers.map(async (server) => {
      const client = server.client();
      const names = (await client.keys('*')).filter((name) => name.includes(key) && name.endsWith(':queue'));
      const each = await Promise.all(names.map((name) => client.zcard(name)));
      client.disconnect();
      return each.reduce((sum, length) => sum + length, 0);
    });
    return (await Promise.all(lengths)).reduce((sum, length) => sum + length, 0);
  }

  it.each([0, 2])('(%d) is waited for by nobody: neither a grant, nor a renewal, a refusal, a hand-over or a release', async (slow) => {
    proxies[slow]!.holdReplies();
    const key = setting.newKey();
    const lease = await one.acquire(key, long);
    await lease.renew();
    expect(await other.tryAcquire(key, long)).toBeNull();
    const waiting = other.acquire(key, { ...long, retryInterval: 60_000 });
    await eventually(async () => (await queued(key)) > 0);
    expect(await lease.release()).toBe(true);
    const next = await waiting;
    expect(next.fencingToken!).toBeGreaterThan(lease.fencingToken!);
    expect(await next.release()).toBe(true);
    // What the slow one answers late stays nowhere.
    await proxies[slow]!.heal();
    await eventually(async () => expect(await setting.values(key)).toEqual(FREE));
  });

  it('with another one is an outage after a memberTimeout, and its late vote is released', async () => {
    const key = setting.newKey();
    for (const proxy of proxies.slice(0, 2)) proxy.holdReplies();
    expect(await rejection(one.acquire(key, { ...long, waitTimeout: 0 }))).toBeInstanceOf(QuorumError);
    // They have granted it, and their answers are under way.
    expect((await setting.values(key)).slice(0, 2)).toEqual([expect.any(String), expect.any(String)]);
    await Promise.all(proxies.map((proxy) => proxy.heal()));
    await eventually(async () => expect(await setting.values(key)).toEqual(FREE));
    await (await other.acquire(key, long)).release();
  });

  it('gets a release for a grant that the others refuse', async () => {
    const key = setting.newKey();
    const lease = await one.acquire(key, long);
    await eventually(async () => expect(await setting.values(key)).toEqual(Array(3).fill(lease.owner)));
    await setting.servers[2]!.client().del(key);
    proxies[2]!.holdReplies();
    expect(await other.tryAcquire(key, long)).toBeNull();
    expect((await setting.values(key))[2]).toEqual(expect.any(String));
    await proxies[2]!.heal();
    await eventually(async () => expect(await setting.values(key)).toEqual([lease.owner, lease.owner, null]));
    await lease.release();
  });
});
