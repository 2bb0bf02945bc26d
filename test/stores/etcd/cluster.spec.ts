// Three members, of which some are killed, stopped or restored.
import type { AcquireReply, LockStore } from 'nestjs-distributed-lock/core';
import { etcdStore } from 'nestjs-distributed-lock/etcd';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { moveLeader, startEtcd, startEtcdCluster, type EtcdServer } from '../../support/etcd-server.js';
import { eventually, staysTrue } from '../../support/eventually.js';
import { threeMembers } from '../three-members.js';
import { open } from './setting.js';

threeMembers({
  start: startEtcdCluster,
  store: (members, options) => etcdStore({ endpoints: members.map(({ url }) => url), ...options }),
  notOk: async () => [],
});

it('a leader that is moved again and again rejects no call, and leaves no key taken', async () => {
  const members = await startEtcdCluster();
  const endpoints = members.map(({ url }) => url);
  // What stays taken, stays so for longer than the test.
  const defaults = { keyTimeout: 600_000, waitTimeout: 100_000 };
  const processes = [1, 2, 3].map(() => open({ endpoints, requestTimeout: 5000 }, { defaults }));
  const keys = ['order:1', 'order:2', 'order:3', 'order:4'];
  let [isOver, sections] = [false, 0];
  const callers = processes.flatMap((locks) =>
    keys.map(async (key) => {
      while (!isOver) await locks.using(key, async () => void sections++);
    }),
  );
  const all = Promise.all(callers);
  all.catch(() => undefined);
  for (let times = 0; times < 20; times++) {
    await eventually(() => moveLeader(members));
    const before = sections;
    await Promise.race([all, eventually(() => sections > before + callers.length)]);
  }
  isOver = true;
  await all;
  for (const key of keys) await (await processes[0]!.acquire(key)).release();
  await Promise.all(members.map((member) => member.stop()));
});

describe('a key whose holder is gone', () => {
  let server: EtcdServer;
  beforeAll(async () => {
    server = await startEtcd();
  });
  afterAll(() => server.stop());

  /** A process of its own: what stores of one process that have the same id have seen, they have seen together. */
  let processes = 0;
  const another = (): string[] => [`${server.url}${' '.repeat(++processes)}`];
  const ttl = 3000;
  const opened: LockStore[] = [];
  afterEach(() => Promise.all(opened.splice(0).map((store) => store.close())));
  function start(): LockStore {
    opened.push(etcdStore({ endpoints: another(), requestTimeout: 5000 }));
    return opened.at(-1)!;
  }
  const take = (store: LockStore, key: string): Promise<AcquireReply> =>
    store.mutex.acquire({ key, owner: `app@host:1:${randomUUID()}`, ttl, tokens: 1, queue: false });
  const isFree = async (store: LockStore, key: string): Promise<boolean> =>
    (await store.mutex.check({ key, owner: 'me' })).state === 'free';

  it('is known to be free by a process that is as old, with the first look at it', async () => {
    const witness = start();
    // Each tries once.
    const observers = Array.from({ length: 60 }, start);
    await Promise.all(observers.map((observer) => isFree(observer, 'another key')));
    expect(await take(start(), 'cron')).toMatchObject({ granted: true });
    await eventually(() => isFree(witness, 'cron'));
    await eventually(async () => (await take(observers.pop()!, 'cron')).granted, { every: 500 });
  });

  it('is taken to a process that is younger, until it has seen it for as long', async () => {
    const witness = start();
    await isFree(witness, 'report');
    expect(await take(start(), 'report')).toMatchObject({ granted: true });
    await eventually(() => isFree(witness, 'report'));
    const young = start();
    expect(await take(young, 'report')).toMatchObject({ granted: false });
    await eventually(async () => (await take(young, 'report')).granted);
  });

  it('is not granted twice when the data of before come back: a holder that is alive keeps it', async () => {
    const [holder, other] = [open({ endpoints: another() }), open({ endpoints: another() })];
    await (await other.acquire('warm')).release();
    // The server is away for a part of it, twice: a copy of its data and a start take a while on a slow machine.
    const keyTimeout = 9_000;
    const lease = await holder.acquire('order:42', { keyTimeout });
    const copy = `${server.data}.copy`;
    await server.kill();
    execFileSync('cp', ['-a', server.data, copy]);
    await server.restart();
    // Renewed by revisions that will be lost.
    const isKept = (): Promise<void> =>
      staysTrue(async () => {
        expect(await other.tryAcquire('order:42')).toBeNull();
        expect(lease.signal.aborted).toBe(false);
      }, keyTimeout + ttl);
    await isKept();
    await server.kill();
    rmSync(server.data, { recursive: true });
    execFileSync('cp', ['-a', copy, server.data]);
    await server.restart();
    await isKept();
    expect(await lease.release()).toBe(true);
    await (await other.acquire('order:42')).release();
  });
});
