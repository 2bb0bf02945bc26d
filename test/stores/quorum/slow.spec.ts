import { QuorumError, type Lease, type Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { rejection } from '../../contract/rejection.js';
import { eventually } from '../../support/eventually.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { useQuorum } from './setting.js';

const setting = useQuorum(3);
const quorum = { quarantine: 0, memberTimeout: 300 };
/** Milliseconds by which a slow server answers later: well over the memberTimeout. */
const DELAY = 2_000;
/** Whoever waits for a slow server needs longer than this. */
const PROMPT = 0.75 * DELAY;
const options = { keyTimeout: 60_000, waitTimeout: 20_000 };

/** The slow ones answer within it. */
const storeOf = ({ connection }: TcpProxy) => redisStore({ options: connection, requestTimeout: 10_000 });

let proxies: TcpProxy[];
let one: Locks;
let other: Locks;
beforeEach(async () => {
  proxies = await setting.proxies();
  [one, other] = [0, 1].map(() => setting.open(quorum, proxies.map(storeOf))) as [Locks, Locks];
  for (const locks of [one, other]) await locks.using(setting.newKey(), () => undefined, options);
});

async function expectPrompt<T>(work: () => Promise<T>): Promise<T> {
  const begin = performance.now();
  const result = await work();
  expect(performance.now() - begin).toBeLessThan(PROMPT);
  return result;
}

it.each([0, 1, 2])(
  'nobody waits for a slow server (%d): neither a grant, nor a renewal, a refusal, a handover or a release',
  async (slow) => {
    proxies[slow]!.delay(DELAY, 0, 'replies');
    const key = setting.newKey();
    const lease = await expectPrompt(() => one.acquire(key, options));
    await expectPrompt(() => lease.renew());
    expect(await expectPrompt(() => other.tryAcquire(key, options))).toBeNull();
    const waiting = other.acquire(key, { ...options, retryInterval: 10_000 });
    await eventually(async () => expect((await Promise.all(queues(key))).some((length) => length > 0)).toBe(true));
    const next = await expectPrompt(async () => {
      expect(await lease.release()).toBe(true);
      return waiting;
    });
    expect(next.fencingToken!).toBeGreaterThan(lease.fencingToken!);
    expect(await expectPrompt(() => next.release())).toBe(true);
    // What the slow one answers late stays nowhere.
    await eventually(async () => expect(await setting.values(key)).toEqual([null, null, null]), { within: 20_000 });
  },
  60_000,
);

/** How many wait at each server. */
const queues = (key: string): Promise<number>[] =>
  setting.servers.map(async (server) => {
    const client = server.client();
    const names = (await client.keys('*')).filter((name) => name.includes(key) && name.endsWith(':queue'));
    const lengths = await Promise.all(names.map((name) => client.zcard(name)));
    client.disconnect();
    return lengths.reduce((sum, length) => sum + length, 0);
  });

it('a majority that is slow is an outage after a memberTimeout, and its late votes are given back', async () => {
  const key = setting.newKey();
  for (const proxy of proxies.slice(0, 2)) proxy.delay(DELAY, 0, 'replies');
  const error = await expectPrompt(() => rejection(one.acquire(key, { ...options, waitTimeout: 0 })));
  expect(error).toBeInstanceOf(QuorumError);
  // They have granted it, and their answers are under way.
  const granted = (await setting.values(key)).slice(0, 2);
  expect(granted).toEqual([expect.any(String), expect.any(String)]);
  await eventually(async () => expect(await setting.values(key)).toEqual([null, null, null]), { within: 20_000 });
  await Promise.all(proxies.map((proxy) => proxy.heal()));
  const lease: Lease = await other.acquire(key, options);
  await lease.release();
}, 60_000);

it('a slow server that grants what the others refuse gets its vote back', async () => {
  const key = setting.newKey();
  const lease = await one.acquire(key, options);
  await eventually(async () => expect(await setting.values(key)).toEqual(Array(3).fill(lease.owner)));
  await setting.servers[2]!.client().del(key);
  proxies[2]!.delay(DELAY, 0, 'replies');
  expect(await expectPrompt(() => other.tryAcquire(key, options))).toBeNull();
  expect((await setting.values(key))[2]).toEqual(expect.any(String));
  await eventually(async () => expect(await setting.values(key)).toEqual([lease.owner, lease.owner, null]), { within: 20_000 });
  await lease.release();
}, 60_000);
