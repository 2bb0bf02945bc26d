// Leases that go from this process to another one, which is killed, on real servers.
import { type Lease, Locks, LockLostError, type LockStore, StoreError } from 'nestjs-distributed-lock/core';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { rejection } from '../support/rejection.js';
import { type Child, forkChild } from '../support/child.js';
import { postgresUrl, startPostgres } from '../support/postgres-server.js';
import { random } from '../support/random.js';
import { startRedis } from '../support/redis-server.js';
import { startProxy, type TcpProxy } from '../support/tcp-proxy.js';
import { POSTGRES } from '../support/tcp-proxy-framing.js';
import type { AdopterMessage } from './adopter.child.js';

const KEY = 'order:42';
const within = 30_000;

interface Engine {
  readonly options: object;
  readonly open: () => LockStore;
  readonly proxy: TcpProxy;
  readonly openOver: () => LockStore;
  readonly stop: () => Promise<unknown>;
}

const ENGINES: Record<'redis' | 'postgres', () => Promise<Engine>> = {
  async redis() {
    const server = await startRedis();
    const options = { options: server.connection, requestTimeout: 5_000 };
    const proxy = await startProxy(server.connection);
    const openOver = () => redisStore({ ...options, options: proxy.connection });
    return { options, open: () => redisStore(options), openOver, proxy, stop: () => Promise.all([proxy.close(), server.stop()]) };
  },
  async postgres() {
    const server = await startPostgres({ port: 'free' });
    const options = { url: postgresUrl(server.connection), schema: 'create' as const, requestTimeout: 5_000 };
    const proxy = await startProxy(server.connection, random, POSTGRES);
    const openOver = () => postgresStore({ ...options, url: postgresUrl({ ...server.connection, ...proxy.connection }) });
    return { options, open: () => postgresStore(options), openOver, proxy, stop: () => Promise.all([proxy.close(), server.stop()]) };
  },
};

describe.each(['redis', 'postgres'] as const)('a lease that is handed to another process, on %s,', (engine) => {
  let server: Engine;
  let locks: Locks;
  beforeAll(async () => {
    server = await ENGINES[engine]();
    locks = new Locks(server.open(), { logger: false, defaults: { keyTimeout: 5_000, waitTimeout: Infinity } });
  });
  afterAll(async () => {
    await locks.close();
    await server.stop();
  });
  const fork = async (): Promise<Child<AdopterMessage>> => {
    const child = await forkChild<AdopterMessage>('test/stores/adopter.child.ts', {
      args: [JSON.stringify({ engine, options: server.options })],
    });
    await child.waitFor('ready');
    return child;
  };
  const handOver = async (key = KEY): Promise<{ lease: Lease; ticket: string }> => {
    const lease = await locks.acquire(key);
    return { lease, ticket: await lease.handOver({ within }) };
  };

  it('is held by one of several processes that adopt it, and goes to the next waiter when that releases it (G2, G8)', async () => {
    const children = await Promise.all([fork(), fork()]);
    const { lease, ticket } = await handOver();
    const next = locks.acquire(KEY);
    for (const child of children) child.send({ ticket, hold: 1_000 });
    const replies = await Promise.all(children.map((child) => Promise.race([child.waitFor('adopted'), child.waitFor('refused')])));
    const [adopted, ...others] = replies.flatMap((reply) => (reply.type === 'adopted' ? [reply.token] : []));
    expect(others).toEqual([]);
    expect(adopted).toBeGreaterThan(lease.fencingToken!);
    expect((await next).fencingToken).toBeGreaterThan(adopted!);
    await (await next).release();
    for (const child of children) await child.kill();
  });

  it('is not lost when the reply to its adoption is: the next try of the job has it, and nobody before (G2, G6)', async () => {
    const worker = new Locks(server.openOver(), { app: 'worker', logger: false, defaults: { keyTimeout: 60_000 } });
    const { ticket } = await handOver();
    const next = locks.acquire(KEY);
    const loss = server.proxy.dropReplyTo('worker@');
    expect(await rejection(worker.adopt(ticket, { waitTimeout: 0 }))).toBeInstanceOf(StoreError);
    expect(loss.lost).toBe(1);
    const adopted = await worker.adopt(ticket, { waitTimeout: 10_000, retryInterval: 50 });
    await adopted.release();
    expect((await next).fencingToken).toBeGreaterThan(adopted.fencingToken!);
    await (await next).release();
    await worker.close();
  });

  it('is adopted by at most one process, however early one of them is killed, and its key is free afterwards (G2, G6)', async () => {
    const killed = async (isSure: boolean, round: number): Promise<void> => {
      const key = `${KEY}:${round}`;
      const child = await fork();
      const { lease, ticket } = await handOver(key);
      child.send({ ticket, hold: 60_000 });
      const hasAdopted = child.waitFor('adopted').then(
        ({ token }) => token,
        () => undefined,
      );
      if (isSure) await hasAdopted;
      else for (let looks = random() * 10; looks > 1; looks--) await locks.inspect(key);
      await child.kill();
      const token = await hasAdopted;
      const own: unknown = await locks.adopt(ticket).catch((error: unknown) => error);
      if (token !== undefined) expect(own).toBeInstanceOf(LockLostError);
      if (own instanceof Error) expect(own).toBeInstanceOf(LockLostError);
      else await (own as Lease).release();
      const after = await locks.acquire(key);
      expect(after.fencingToken).toBeGreaterThan(token ?? lease.fencingToken!);
      await after.release();
      expect(await rejection(locks.adopt(ticket))).toBeInstanceOf(LockLostError);
    };
    await Promise.all([true, false, false, false].map(killed));
  });
});
