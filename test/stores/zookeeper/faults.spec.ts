// Connections and processes that fail, and what they leave behind. One server behind a proxy.
import type { Locks } from 'nestjs-distributed-lock/core';
import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';
import { SEQUENTIAL } from '../../../lib/stores/zookeeper/zookeeper.client.js';
import { ZookeeperSession } from '../../../lib/stores/zookeeper/zookeeper.session.js';
import { ZookeeperTable } from '../../../lib/stores/zookeeper/zookeeper.table.js';
import { ZookeeperWakeUps } from '../../../lib/stores/zookeeper/zookeeper.wakeups.js';
import { rejection } from '../../support/rejection.js';
import { startLines } from '../../doctor/examined.js';
import { eventually } from '../../support/eventually.js';
import { startProxy, type TcpProxy } from '../../support/tcp-proxy.js';
import { ZOOKEEPER } from '../../support/tcp-proxy-framing.js';
import { startZookeeper, type ZookeeperServer } from '../../support/zookeeper-server.js';
import { forkChild } from '../../support/child.js';
import { connected, open } from './setting.js';

let server: ZookeeperServer;
let proxy: TcpProxy;
let direct: string;
let proxied: string;
beforeAll(async () => {
  server = await startZookeeper();
  proxy = await startProxy({ port: server.port }, Math.random, ZOOKEEPER);
  direct = server.connectionString;
  proxied = `127.0.0.1:${proxy.port}`;
});
afterEach(() => proxy.heal());
afterAll(async () => {
  await proxy.close();
  await server.stop();
});

/** A waiter in another process gets the key with the release, although it asks by itself only every minute. */
async function handOver(holder: Locks, waiter: Locks, key: string, meanwhile?: () => Promise<unknown>): Promise<void> {
  const lease = await holder.acquire(key, { keyTimeout: 60_000 });
  const waiting = waiter.acquire(key, { retryInterval: 60_000, waitTimeout: 90_000 });
  await eventually(async () => (await holder.inspect(key)).waiters.length === 1);
  await meanwhile?.();
  await lease.release();
  await (await waiting).release();
}

function sessionAt(root: string, hosts = direct, requestTimeout = 5000): ZookeeperSession {
  return new ZookeeperSession({ client: undefined, hosts, root, auth: [], acl: undefined }, requestTimeout);
}

it('an app says at its start where its locks are, also over a client that is lent, and no password', async () => {
  const auth = [{ scheme: 'digest', auth: 'shop:s3cret' }];
  const [line] = await startLines(zookeeperStore({ connectionString: `${direct}/shop`, auth, requestTimeout: 5000 }), 'a:');
  expect(line).toMatch(RegExp(`^ZooKeeper [\\d.]+ at ${direct}, node /shop/nestjs-distributed-lock, namespace "a:", answers in `));
  const client = await connected(`${direct}/shop`);
  const [lent] = await startLines(zookeeperStore({ client, requestTimeout: 5000 }));
  expect(lent).toMatch(RegExp(`^Zookeeper at ${direct}, node /shop/nestjs-distributed-lock, answers in `));
});

it('a session that takes longer to open than a request may is opened all the same (G8)', async () => {
  proxy.delay(500, 0, 'replies');
  const session = sessionAt('/slow', proxied, 300);
  // Now it is connected, and the next replies are late.
  await eventually(async () => !String(await rejection(session.data('/'))).includes('gave no connection'));
  await session.close();
});

it('a request that is sent late, after a session was opened, ends no connection (G8)', async () => {
  proxy.delay(1_300, 0, 'replies');
  const session = sessionAt('/slow', proxied, 2_000);
  await expect(session.data('/')).rejects.toThrow('did not answer within 2000 ms');
  expect(await session.data('/')).toBeDefined();
  await session.close();
});

it.each(['new', 'known'])('a lost reply to an acquire of a %s key changes nothing, and one to its release frees the key', async (kind) => {
  const [locks, other] = [open({ connectionString: proxied }), open({ connectionString: direct })];
  const key = `lost-${kind}`;
  await (await locks.acquire(kind === 'new' ? 'other' : key)).release();
  const loss = proxy.dropReplyTo(`r/${key}`);
  const lease = await locks.acquire(key);
  expect(loss.lost).toBe(1);
  expect(await other.tryAcquire(key)).toBeNull();
  const next = proxy.dropReplyTo(`r/${key}`);
  expect(await lease.release()).toBe(true);
  expect(next.lost).toBe(1);
  expect((await other.acquire(key, { waitTimeout: 0 })).fencingToken).toBeGreaterThan(lease.fencingToken!);
});

it('a silent connection is replaced, and waiters are woken over the next one', async () => {
  const silent = await startProxy({ port: server.port }, Math.random, ZOOKEEPER);
  proxy.moveTo({ port: silent.port });
  const [holder, waiter] = [open({ connectionString: direct }), open({ connectionString: proxied, requestTimeout: 2000 })];
  await handOver(holder, waiter, 'silent', async () => {
    silent.blackhole();
    proxy.moveTo({ port: server.port });
    expect(await rejection(waiter.tryAcquire('other'))).toMatchObject({ name: 'StoreError', transient: true });
    await eventually(() => waiter.tryAcquire('other'));
  });
  await handOver(holder, waiter, 'silent');
  await eventually(() => expect(proxy.connections).toBe(1));
  await silent.close();
});

it('nothing is sent while it is not connected, and what was given up is not sent later', async () => {
  const table = new ZookeeperTable(sessionAt('/unsent', proxied, 300));
  const write = (key: string) => table.exchange([{ key, expected: { version: undefined }, text: '', messages: [] }])[0]!;
  await write('before');
  proxy.refuse();
  proxy.cut();
  // The end of the connection is noticed a little later.
  await eventually(async () => expect(await rejection(write('cut'))).toMatchObject({ isUnsent: true }));
  expect(await rejection(write('unsent'))).toMatchObject({ name: 'StoreError', isUnsent: true, transient: true });
  await proxy.heal();
  await eventually(() => write('after'));
  expect(await write('unsent')).toMatchObject({ written: true });
  await table.close();
});

it('of 100 processes that wait, each release wakes one', async () => {
  const heard = jest.spyOn(ZookeeperWakeUps.prototype, 'received');
  const offers = (): string[] => heard.mock.calls.flatMap(([text]) => text.split('\n')).filter((line) => !/^echo:|\t/.test(line));
  const [holder, ...waiters] = Array.from({ length: 101 }, () => open({ connectionString: direct, requestTimeout: 10_000 }));
  const first = await holder!.acquire('crowd', { keyTimeout: 90_000 });
  // `inspect` would ask all processes.
  const session = sessionAt('/');
  const queued = async (): Promise<number> => {
    const { text } = (await session.data('/nestjs-distributed-lock/r/crowd'))!;
    return (JSON.parse(text.slice(text.indexOf(' '))) as { record: { queue: unknown[] } }).record.queue.length;
  };
  let entered = 0;
  const all: Promise<void>[] = [];
  // Not all at once: only one of them can join with each change.
  for (const [index, waiter] of waiters.entries()) {
    const acquiring = waiter.acquire('crowd', { retryInterval: 60_000, waitTimeout: 100_000, keyTimeout: 60_000 });
    all.push(
      acquiring.then(async (lease) => {
        entered++;
        await lease.release();
      }),
    );
    if (index % 5 === 4) await eventually(async () => (await queued()) === index + 1);
  }
  expect(offers()).toEqual([]);
  await first.release();
  await Promise.all(all);
  expect(entered).toBe(100);
  expect(offers()).toHaveLength(100);
  await session.close();
  heard.mockRestore();
});

describe('a sweep', () => {
  const tables: ZookeeperTable[] = [];
  afterEach(() => Promise.all(tables.splice(0).map((table) => table.close())));
  const tableAt = (root: string): ZookeeperTable => {
    const table = new ZookeeperTable(sessionAt(root));
    tables.push(table);
    return table;
  };
  const write = (table: ZookeeperTable, key: string, version?: string) =>
    table.exchange([{ key, expected: { version }, text: `"${version}"`, messages: [] }])[0]!;
  const look = (table: ZookeeperTable, key: string) => table.exchange([{ key, expected: 'look', text: '', messages: [] }])[0]!;

  it('deletes rows that are over and were written by then, and no others', async () => {
    const table = tableAt('/swept-rows');
    for (const key of ['a', 'b']) await write(table, key);
    const count = await table.count();
    await write(table, 'later');
    const [b] = [await look(table, 'b')];
    await write(table, 'b', (b as { row: { version: string } }).row.version);
    await table.sweep(count, () => true);
    expect(await look(table, 'a')).toMatchObject({ row: undefined });
    for (const key of ['b', 'later']) expect(await look(table, key)).toMatchObject({ row: { text: expect.any(String) } });
    await table.sweep(await table.count(), () => false);
    expect(await look(table, 'b')).toMatchObject({ row: { text: expect.any(String) } });
  });

  it('makes the versions of before void, although those of the new node are the same numbers', async () => {
    const table = tableAt('/swept-lives');
    const old = await write(table, 'key');
    await table.sweep(await table.count(), () => true);
    const next = await write(table, 'key');
    const [number, other] = [old, next].map((found) => (found as { version: string }).version.split('.')[1]);
    expect(number).toBe(other);
    expect(await write(table, 'key', (old as { version: string }).version)).toMatchObject({ written: false, row: { text: '"undefined"' } });
    expect(await write(table, 'key', (next as { version: string }).version)).toMatchObject({ written: true });
  });

  it('deletes the inboxes of processes that have crashed, and not those of the living', async () => {
    const [table, living, crashed] = [1, 2, 3].map(() => tableAt('/swept-inboxes')) as [ZookeeperTable, ZookeeperTable, ZookeeperTable];
    await crashed.count();
    await Promise.all([living, table].map((each) => each.wakeUps.open(() => undefined)));
    await table.exchange([
      { key: 'k', expected: { version: undefined }, text: '', messages: [{ inbox: crashed.wakeUps.inbox, text: 'owner' }] },
    ])[0];
    const count = await table.count();
    await living.count();
    await table.sweep(count - 1, () => false);
    const raw = sessionAt('/');
    const inboxes = await raw.children('/swept-inboxes/i');
    await raw.close();
    expect(inboxes.sort()).toEqual([living, table].map(({ wakeUps }) => wakeUps.inbox).sort());
  });
});

it('a message to a process that has ended does not keep a change from being made, and the others get theirs', async () => {
  const table = new ZookeeperTable(sessionAt('/ended'));
  const heard: string[] = [];
  await table.wakeUps.open(() => undefined);
  table.wakeUps.listen('owner', () => heard.push('owner'));
  const messages = [
    { inbox: 'ended', text: 'nobody' },
    { inbox: table.wakeUps.inbox, text: 'owner' },
  ];
  expect(await table.exchange([{ key: 'ended', expected: { version: undefined }, text: '', messages }])[0]).toMatchObject({
    written: true,
  });
  await eventually(() => heard.length === 1);
  await table.close();
});

it('what is no message in an inbox is dropped, and its owner is woken by the next one', async () => {
  const connectionString = `${direct}/garbage`;
  const [holder, waiter] = [open({ connectionString }), open({ connectionString })];
  await handOver(holder, waiter, 'hand-over');
  const session = sessionAt('/garbage');
  const inboxes = await session.children('/garbage/nestjs-distributed-lock/i');
  expect(inboxes.length).toBeGreaterThan(0);
  for (const inbox of inboxes) {
    const path = `/garbage/nestjs-distributed-lock/i/${inbox}`;
    await session.make(`${path}/hello`);
    for (const text of ['\t\t\n\0', '', 'x'.repeat(100_000)]) await session.create(`${path}/-`, text, SEQUENTIAL);
  }
  await handOver(holder, waiter, 'hand-over');
  await eventually(async () => (await session.children(`/garbage/nestjs-distributed-lock/i/${inboxes[0]}`)).length === 0);
  await session.close();
});

it('a process that has waited ends by itself, though it closes nothing', async () => {
  const child = await forkChild('test/stores/zookeeper/ends.child.ts', { args: [direct] });
  expect(await child.exit).toEqual({ code: 0, signal: null });
});
