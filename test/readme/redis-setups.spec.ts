// The stores of docs/redis.md, on real servers.
import { Redis as Iovalkey } from 'iovalkey';
import { createClient, type RedisClientType } from 'redis';
import { Locks, type LockStore } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { makeCertificate } from '../support/certificate.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { startClusterNode } from '../support/redis-cluster.js';
import { startSentinel } from '../support/redis-sentinel.js';
import { startRedis } from '../support/redis-server.js';
import { usesEveryVerb } from '../stores/redis/every-verb.js';
import { storeOverNodeRedis } from './node-redis.js';
import { storeBehindSentinels, storeOnCluster, storeOnSocket, storeOverTls, storeThatWaitsForReplicas } from './redis-setups.js';

/** Two processes exclude each other, and one waits for the other. */
async function expectLocks(open: () => LockStore): Promise<void> {
  const [mine, theirs] = [open(), open()].map((store) => new Locks(store, { logger: false, shutdownTimeout: 0 })) as [Locks, Locks];
  try {
    const lease = await mine.acquire('order:42', { waitTimeout: 60_000 });
    expect(await theirs.tryAcquire('order:42')).toBeNull();
    const waiting = theirs.acquire('order:42', { waitTimeout: 60_000 });
    await lease.release();
    expect((await waiting).fencingToken).toBeGreaterThan(lease.fencingToken!);
  } finally {
    await Promise.all([mine.close(), theirs.close()]);
  }
}

it('a store behind sentinels locks', async () => {
  const master = await startRedis({ port: 'free' });
  const sentinel = await startSentinel({ name: 'locks', master });
  try {
    await expectLocks(() => storeBehindSentinels([{ host: '127.0.0.1', port: sentinel.port! }]));
  } finally {
    await Promise.all([master.stop(), sentinel.stop()]);
  }
});

it('a store on a Cluster locks', async () => {
  const node = await startClusterNode();
  try {
    await expectLocks(() => storeOnCluster([{ host: '127.0.0.1', port: node.port! }]));
  } finally {
    await node.stop();
  }
});

it('a store that waits for replicas locks, once there is one', async () => {
  const [master, replica] = await Promise.all([
    startRedis({ port: 'free', args: ['--repl-diskless-sync-delay', '0'] }),
    startRedis({ port: 'free' }),
  ]);
  try {
    const open = (): LockStore => storeThatWaitsForReplicas(`redis://127.0.0.1:${master.port}`);
    const alone = new Locks(open(), { logger: false });
    await eventually(() => expect(alone.acquire('order:42', { waitTimeout: 0 })).rejects.toThrow('0 of 1 replica has it'));
    await alone.close();
    await replica.client().replicaof('127.0.0.1', master.port!);
    await expectLocks(open);
  } finally {
    await Promise.all([master.stop(), replica.stop()]);
  }
});

it('a store on a unix socket locks, also with its path as the URL', async () => {
  const server = await startRedis();
  try {
    expect(server.port).toBeUndefined();
    await expectLocks(() => storeOnSocket(server.path));
    await expectLocks(() => redisStore({ url: server.path! }));
  } finally {
    await server.stop();
  }
});

it('a store over iovalkey does all that a store does, and leaves its client open', async () => {
  const server = await startRedis({ port: 'free' });
  const clients = [1, 2].map(() => new Iovalkey({ host: '127.0.0.1', port: server.port }));
  const [mine, theirs] = clients.map((client) => new Locks(redisStore({ client }), { logger: false })) as [Locks, Locks];
  try {
    await usesEveryVerb(mine, theirs, 'order:42');
    await Promise.all([mine.close(), theirs.close()]);
    expect(await clients[0]!.ping()).toBe('PONG');
  } finally {
    await Promise.all([mine.close(), theirs.close()]);
    for (const client of clients) client.disconnect();
    await server.stop();
  }
});

it('a store over TLS locks', async () => {
  const certificate = makeCertificate();
  const port = await freePort();
  const server = await startRedis({ args: [...certificate.args, '--tls-port', String(port)] });
  try {
    await expectLocks(() => storeOverTls('127.0.0.1', port, certificate.ca));
  } finally {
    await server.stop();
    certificate.remove();
  }
});

it('a store over node-redis locks, and is usable after a break', async () => {
  const server = await startRedis({ port: 'free' });
  const client: RedisClientType = createClient({ url: `redis://127.0.0.1:${server.port}` });
  const locks = new Locks(storeOverNodeRedis(client), { logger: false });
  try {
    const lease = await locks.acquire('order:42', { keyTimeout: 10_000, waitTimeout: 0 });
    expect(await locks.tryAcquire('order:42')).toBeNull();
    expect(await lease.release()).toBe(true);
    const redis = server.client();
    await redis.client('KILL', 'TYPE', 'NORMAL' as never);
    redis.disconnect();
    expect(await locks.using('order:42', () => 'result', { keyTimeout: 10_000, waitTimeout: 60_000 })).toBe('result');
  } finally {
    await locks.close();
    await server.stop();
  }
});
