import { Locks, StoreError, type LockStore } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { rejection } from '../../contract/rejection.js';
import { eventually } from '../../support/eventually.js';
import { startClusterNode } from '../../support/redis-cluster.js';
import { pause } from '../../support/time.js';
import { useQuorum } from './setting.js';

const setting = useQuorum(2);
const KEY = 'nestjs-distributed-lock:since';

function open(options: object = setting.servers[0]!.connection): LockStore {
  const store = redisStore({ options: { disconnectTimeout: 100, ...options } });
  setting.finally(() => store.close());
  return store;
}

/** Milliseconds of a server that may be away for a moment. */
const ageOf = (store: LockStore) => eventually(() => store.remembers!());

beforeEach(() => setting.servers[0]!.client().flushall());

it('a Redis server remembers since it was asked first, whoever asks, and is asked once for each connection', async () => {
  const store = open();
  expect(await store.remembers!()).toBeLessThan(1_000);
  await pause(300);
  expect(await open().remembers!()).toBeGreaterThanOrEqual(290);
  await setting.servers[0]!.client().del(KEY);
  expect(await store.remembers!()).toBeGreaterThanOrEqual(290);
});

it('a server that was started again has forgotten: a store does not go by what it was told before', async () => {
  const [server] = setting.servers;
  const store = open();
  await store.remembers!();
  await pause(1_000);
  expect(await store.remembers!()).toBeGreaterThanOrEqual(990);
  await server!.restart();
  expect(await ageOf(store)).toBeLessThan(900);
});

it('also one that was started from an old snapshot, or was promoted: the key is there, and of another process', async () => {
  const [master, replica] = setting.servers;
  await open().remembers!();
  const client = replica!.client();
  const { path } = master!.connection as { path?: string };
  // A copy, as a replica or a snapshot has it.
  const value = await master!.client().get(KEY);
  expect(path).toBeDefined();
  await client.set(KEY, value!);
  await pause(500);
  expect(await open(replica!.connection).remembers!()).toBeLessThan(400);
  expect(await client.get(KEY)).not.toBe(value);
});

it('a user who may not ask INFO gets a final error that says what is missing', async () => {
  const admin = setting.servers[0]!.client();
  await admin.acl('SETUSER', 'blind', 'on', '>pass', '~*', '+@all', '-info');
  const error = await rejection(open({ ...setting.servers[0]!.connection, username: 'blind', password: 'pass' }).remembers!());
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toMatchObject({ transient: false, message: expect.stringContaining('INFO') });
});

it('a Cluster is no member of a quorum: it does not vote, and a warning says so', async () => {
  const node = await startClusterNode();
  setting.finally(() => node.stop());
  const open = (): LockStore => redisStore({ cluster: [{ host: '127.0.0.1', port: node.port! }] });
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  setting.finally(() => warn.mockRestore());
  const locks = new Locks(quorumStore([open(), open(), open()]), { logger: false, shutdownTimeout: 0 });
  setting.finally(() => locks.close());
  const error = await rejection(locks.acquire(setting.newKey(), { waitTimeout: 10_000 }));
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toMatchObject({ transient: false, message: expect.stringContaining('cannot be a member of a quorum') as string });
  expect(warn.mock.calls.map(([warning]) => warning)).toContainEqual(
    expect.stringMatching(/member \d \(redis\): A Redis Cluster cannot be a member of a quorum/),
  );
});

it('a memory store remembers since it was made', async () => {
  const store = memoryStore();
  await pause(50);
  const age = await store.remembers!();
  expect(age).toBeGreaterThanOrEqual(49);
  expect(age).toBeLessThan(30_000);
});
