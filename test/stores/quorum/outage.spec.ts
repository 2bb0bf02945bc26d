import { Locks, QuorumError, StoreError, type LockStore } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { rejection } from '../../support/rejection.js';
import { eventually } from '../../support/eventually.js';
import { startClusterNode } from '../../support/redis-cluster.js';
import { long, patient, useQuorum } from './setting.js';

const setting = useQuorum(5);

describe('a minority of the servers', () => {
  const minority = [0, 3] as const;

  it('that is emptied under a lease takes it from nobody, and gets it back', async () => {
    const key = setting.newKey();
    const lease = await setting.open().acquire(key, long);
    await eventually(async () => expect(await setting.values(key)).toEqual(Array(5).fill(lease.owner)));
    await Promise.all(minority.map((index) => setting.servers[index]!.client().flushall()));
    expect(await setting.open().tryAcquire(key, long)).toBeNull();
    await eventually(async () => {
      await lease.renew();
      expect(await setting.values(key)).toEqual(Array(5).fill(lease.owner));
    });
    await lease.release();
    await eventually(async () => expect(await setting.values(key)).toEqual(Array(5).fill(null)));
  });

  it('whose replies are lost stops no lock', async () => {
    const proxies = await setting.proxies();
    const [one, other] = [0, 1].map(() => setting.open(patient, proxies.map(setting.store))) as [Locks, Locks];
    await setting.expectLocksWork(one, other);
    for (const proxy of proxies.slice(0, 2)) proxy.dropReplies();
    await setting.expectLocksWork(one, other);
    await Promise.all(proxies.map((proxy) => proxy.heal()));
    await setting.expectLocksWork(one, other);
  });

  it('that is away leaves a lease that can be checked', async () => {
    const proxies = await setting.proxies();
    const locks = setting.open(patient, proxies.map(setting.store));
    const lease = await locks.acquire(setting.newKey(), long);
    for (const proxy of proxies.slice(0, 2)) {
      proxy.refuse();
      proxy.cut();
    }
    const { mutex } = locks.store;
    await eventually(async () => expect(await mutex.check({ key: lease.key, owner: lease.owner })).toMatchObject({ state: 'held' }));
  });
});

describe.each(['killed', 'silent'])('a member that is %s', (how) => {
  it('is in the log once, away and back, and in the health meanwhile, also while nobody asks for a lock', async () => {
    const proxies = await setting.proxies();
    const lines: string[] = [];
    const note = (line: string): void => void lines.push(line);
    const logger = { warn: note, error: note };
    const locks = setting.open(patient, proxies.map(setting.store), { logger });
    const without = ['the quorum has to do without member 2 (redis)'];
    const [, member] = proxies;
    await locks.using(setting.newKey(), () => undefined);
    expect((await locks.health()).degraded).toEqual([]);
    if (how === 'killed') {
      member!.refuse();
      member!.cut();
    } else {
      member!.dropReplies();
      await locks.using(setting.newKey(), () => undefined);
    }
    await eventually(() => lines.length > 0);
    for (let i = 0; i < 5; i++) await locks.using(setting.newKey(), () => undefined);
    await eventually(async () => expect((await locks.health()).degraded).toEqual(without));
    await member!.heal();
    await eventually(() => lines.length > 1);
    await eventually(async () => expect((await locks.health()).degraded).toEqual([]));
    expect(lines).toEqual([
      expect.stringMatching(/^Member 2 \(redis\) does not answer since .*; the quorum does without it \[NDL_QUORUM_MEMBER\]$/),
      expect.stringMatching(/^Member 2 \(redis\) answers again after .* \[NDL_QUORUM_MEMBER\]$/),
    ]);
  });
});

it('a majority of the servers that is away is a QuorumError, which says of each server why, and passes', async () => {
  const locks = setting.open();
  const key = setting.newKey();
  const away = setting.servers.slice(0, 3);
  await locks.using(setting.newKey(), () => undefined);
  await Promise.all(away.map((server) => server.kill()));
  const error = await rejection(locks.acquire(key, { ...long, waitTimeout: 0 }));
  expect(error).toBeInstanceOf(QuorumError);
  expect(error).toMatchObject({ transient: true, key });
  const { votes } = error as QuorumError;
  expect(votes).toHaveLength(5);
  expect(votes.slice(3)).toEqual(['granted', 'granted']);
  for (const vote of votes.slice(0, 3)) expect(vote).toBeInstanceOf(StoreError);
  // The votes of the others were given back.
  const waiting = locks.acquire(key, { ...long, retryInterval: 100 });
  await Promise.all(away.map((server) => server.restart()));
  await (await waiting).release();
});

describe('a member remembers', () => {
  const KEY = 'nestjs-distributed-lock:since';
  const open = (options: object = setting.servers[0]!.connection): LockStore => {
    const store = redisStore({ options });
    setting.finally(() => store.close());
    return store;
  };
  /** Since when, on our clock; too late by what the answer needs. */
  const bornAt = async (store: LockStore) => {
    const age = await store.remembers!();
    return performance.now() - age;
  };
  /** Clocks of two processes go on alike, but not quite. */
  const since = () => performance.now() - 50;
  beforeEach(() => setting.servers[0]!.client().flushall());

  it('since it was asked first, by any process, and is asked once for each connection', async () => {
    const start = since();
    const store = open();
    expect(await bornAt(store)).toBeGreaterThanOrEqual(start);
    await eventually(async () => (await open().remembers!()) >= 300);
    // Each connection rounds by its own round trip.
    const before = await store.remembers!();
    await setting.servers[0]!.client().del(KEY);
    expect(await store.remembers!()).toBeGreaterThanOrEqual(before);
  });

  it('nothing from before its start: a store does not go by an earlier answer', async () => {
    const store = open();
    await eventually(async () => (await store.remembers!()) >= 1_000);
    const start = since();
    await setting.servers[0]!.restart();
    expect(await eventually(() => bornAt(store))).toBeGreaterThanOrEqual(start);
  });

  it('nothing by an old snapshot, or as a replica that was promoted: the key is there, and of another process', async () => {
    const store = open();
    await eventually(async () => (await store.remembers!()) >= 500);
    const [master, replica] = setting.servers.map((server) => server.client());
    const value = await master!.get(KEY);
    await replica!.set(KEY, value!);
    const start = since();
    expect(await bornAt(open(setting.servers[1]!.connection))).toBeGreaterThanOrEqual(start);
    expect(await replica!.get(KEY)).not.toBe(value);
  });

  it('nothing that its user may not ask for: who may not ask INFO gets a final error that says what is missing', async () => {
    // ioredis says that it cannot ask INFO.
    const warn = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    setting.finally(() => warn.mockRestore());
    const admin = setting.servers[0]!.client();
    await admin.acl('SETUSER', 'blind', 'on', '>pass', '~*', '+@all', '-info');
    const error = await rejection(open({ ...setting.servers[0]!.connection, username: 'blind', password: 'pass' }).remembers!());
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ transient: false, message: expect.stringContaining('INFO') });
  });

  it('since it was made, in memory', async () => {
    const start = performance.now();
    const store = memoryStore();
    expect(await bornAt(store)).toBeGreaterThanOrEqual(start);
    await eventually(async () => (await store.remembers!()) >= 50);
  });
});

it('a Cluster is no member of a quorum: it does not vote, and a warning says so', async () => {
  const node = await startClusterNode();
  setting.finally(() => node.stop());
  const openCluster = (): LockStore => redisStore({ cluster: [{ host: '127.0.0.1', port: node.port! }] });
  const logger = { warn: jest.fn(), error: jest.fn() };
  const locks = new Locks(quorumStore([openCluster(), openCluster(), openCluster()]), { logger, shutdownTimeout: 0 });
  setting.finally(() => locks.close());
  const error = await rejection(locks.acquire(setting.newKey(), { waitTimeout: 60_000 }));
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toMatchObject({ transient: false, message: expect.stringContaining('cannot be a member of a quorum') as string });
  expect(logger.warn.mock.calls.flat()).toContainEqual(
    expect.stringMatching(/member \d \(redis\): A Redis Cluster cannot be a member of a quorum/),
  );
});
