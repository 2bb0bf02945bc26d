// A page of a balancer, a server of another kind or a proxy that cuts may stand at the address of a store. Jest fails a test in which an error is not caught.
import { Redis } from 'ioredis';
import { createConnection } from 'mysql2/promise';
import { LockError, Locks, type LockStore } from 'nestjs-distributed-lock/core';
import { etcdStore } from 'nestjs-distributed-lock/etcd';
import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';
import { makeCertificate } from '../support/certificate.js';
import { startEtcd } from '../support/etcd-server.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { type Impostor, type Lie, startImpostor } from '../support/impostor.js';
import { mariadbUrl, startMariadb } from '../support/mariadb-server.js';
import { postgresUrl, startPostgres } from '../support/postgres-server.js';
import { random } from '../support/random.js';
import { nodeRedisClient } from '../support/redis-clients.js';
import { startRedis } from '../support/redis-server.js';
import { startZookeeper } from '../support/zookeeper-server.js';

const requestTimeout = 2_000;
/** A waiter asks by itself only after the time limit of a test: without a wake-up the test fails. */
const patient = { keyTimeout: 300_000, waitTimeout: Infinity, retryInterval: 300_000 };

const PAGE = Buffer.from(
  'HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 26\r\n\r\n<html>\r\n\r\n502\r\n\r\n</html>\r\n',
);
const noise = (length = 1 + Math.floor(random() * 200)): Buffer => Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
const half = (answer = noise(9)): Buffer => answer.subarray(0, Math.ceil(answer.length / 2));
const LIES: Lie[] = [
  { name: 'a page', isAlone: true, closes: true, says: () => PAGE },
  { name: 'a page, and nothing more,', isAlone: true, says: () => PAGE },
  { name: 'a null of JSON', isAlone: true, says: () => Buffer.from('null\r\n') },
  { name: 'noise', isAlone: true, says: () => noise() },
  { name: 'a row of zeros', isAlone: true, says: () => Buffer.alloc(64) },
  { name: 'one half of an answer', closes: true, says: half },
  { name: 'a page in the midst of an answer', says: (answer) => Buffer.concat([half(answer), PAGE]) },
  { name: 'each answer twice', says: (answer = noise(9)) => Buffer.concat([answer, answer]) },
];

interface Server {
  readonly port: number;
  store(port: number): LockStore;
  stop(): Promise<unknown>;
}

async function redis(): Promise<Server> {
  const server = await startRedis({ port: 'free' });
  const store = (port: number): LockStore => redisStore({ url: `redis://127.0.0.1:${port}`, requestTimeout });
  return { port: server.port!, store, stop: () => server.stop() };
}

const nodeRedis = async (): Promise<Server> => ({
  ...(await redis()),
  store: (port) => redisStore({ client: nodeRedisClient({ port }), requestTimeout }),
});

async function postgres(): Promise<Server> {
  const server = await startPostgres({ port: 'free' });
  const store = (port: number): LockStore =>
    postgresStore({ url: postgresUrl({ ...server.connection, port }), schema: 'create', requestTimeout });
  return { port: server.port!, store, stop: () => server.stop() };
}

async function mysql(): Promise<Server> {
  const server = await startMariadb({ port: 'free' });
  const root = await createConnection(server.connection);
  await root.query('CREATE DATABASE shop');
  await root.end();
  const at = { host: '127.0.0.1', user: 'root', database: 'shop' };
  const store = (port: number): LockStore => mysqlStore({ url: mariadbUrl({ ...at, port }), schema: 'create', requestTimeout });
  return { port: server.port!, store, stop: () => server.stop() };
}

async function zookeeper(): Promise<Server> {
  const server = await startZookeeper();
  const store = (port: number): LockStore => zookeeperStore({ connectionString: `127.0.0.1:${port}`, requestTimeout });
  return { port: server.port, store, stop: () => server.stop() };
}

async function etcd(): Promise<Server> {
  const server = await startEtcd();
  const store = (port: number): LockStore => etcdStore({ endpoints: [`http://127.0.0.1:${port}`], requestTimeout });
  return { port: Number(new URL(server.url).port), store, stop: () => server.stop() };
}

const PLACES = [redis, nodeRedis, postgres, mysql, zookeeper].map((start) => ({ name: start.name, start }));

describe.each(PLACES)('at the address of $name', ({ start }) => {
  let server: Server;
  let impostor: Impostor;
  let locks: Locks;
  let others: Locks;
  let keys = 0;
  beforeAll(async () => {
    // The driver prints what it cannot read.
    jest.spyOn(console, 'error').mockImplementation();
    server = await start();
    impostor = await startImpostor(server.port);
    [locks, others] = [impostor.port, server.port].map((port) => new Locks(server.store(port), { logger: false })) as [Locks, Locks];
    await handOver();
  });
  afterAll(async () => {
    await Promise.all([locks, others].map((each) => each.close()));
    impostor.close();
    await server.stop();
    jest.restoreAllMocks();
  });

  /** From another process. */
  async function handOver(): Promise<void> {
    const key = `hand-over ${++keys}`;
    const { wakeUps } = locks.store.mutex;
    const lease = await others.acquire(key, patient);
    await eventually(async () => {
      await locks.acquire(key, { waitTimeout: 200, retryInterval: 50 }).catch(() => undefined);
      return wakeUps?.isOpen !== false;
    });
    const waiting = locks.acquire(key, { ...patient, ...(wakeUps === undefined && { retryInterval: 50 }) });
    await eventually(async () => expect((await others.inspect(key)).waiterCount).toBe(1));
    await lease.release();
    expect(await (await waiting).release()).toBe(true);
  }

  it.each(LIES)('$name is an outage at most, and locks are granted and handed over afterwards (G9)', async (lie) => {
    impostor.told = 0;
    impostor.lie = lie;
    if (lie.isAlone) impostor.cut();
    const calls = [1, 2, 3].map((number) => locks.using(`lie ${number}`, () => undefined, { keyTimeout: 5_000, waitTimeout: 1_000 }));
    const ended = Promise.allSettled(calls);
    await eventually(() => impostor.told > 0);
    impostor.lie = undefined;
    impostor.cut();
    for (const outcome of await ended) if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(LockError);
    await handOver();
  });
});

describe('a Redis store, over its own client or a lent one of ioredis or node-redis, says what may be wrong at the first connection', () => {
  const plain = { rejectUnauthorized: false };
  it.concurrent.each([
    ['with TLS at a Redis without it', 'does not answer over TLS', async () => [await startRedis({ port: 'free' }), plain] as const],
    [
      'without TLS at a Redis with it',
      'closed the connection before it answered',
      async () => [await startSecureRedis(), undefined] as const,
    ],
    ['at a Postgres', 'closed the connection before it answered', async () => [await startPostgres({ port: 'free' }), undefined] as const],
  ])('%s', async (_, problem, start) => {
    const [server, tls] = await start();
    const options = { host: '127.0.0.1', port: server.port, tls };
    const clients = [new Redis({ ...options, lazyConnect: true }), nodeRedisClient(options)];
    const stores = [{ options }, ...clients.map((client) => ({ client }))].map((where) => redisStore({ ...where, requestTimeout }));
    const error = new RegExp(
      `^Redis is not connected within 2000 ms: the server ${problem}: is it redis:// or rediss://, and is this a Redis\\?`,
    );
    try {
      const checks = stores.map(async (store) => {
        const locks = new Locks(store, { logger: false });
        await expect(locks.checkStore()).rejects.toThrow(error);
        await locks.close();
      });
      await Promise.all(checks);
    } finally {
      await server.stop();
    }
  });
});

async function startSecureRedis() {
  const certificate = makeCertificate();
  const port = await freePort();
  const server = await startRedis({ args: [...certificate.args, '--tls-port', String(port)] });
  certificate.remove();
  return { port, stop: () => server.stop() };
}

it.concurrent.each([
  { name: 'etcd', start: etcd, swallows: '/v3/watch' },
  { name: 'redis', start: redis, swallows: 'subscribe' },
  { name: 'postgres', start: postgres, swallows: 'LISTEN' },
])(
  'where something before $name accepts a connection that listens, and passes nothing on, waiters poll after one warning, health says so, and they are woken when it is over (G8)',
  async ({ start, swallows }) => {
    const server = await start();
    const impostor = await startImpostor(server.port);
    impostor.swallows = swallows;
    const warn = jest.fn();
    const locks = new Locks(server.store(impostor.port), { logger: { warn, error: warn } });
    const others = new Locks(server.store(server.port), { logger: false });
    const lease = await others.acquire('key', patient);
    const waiting = locks.acquire('key', { ...patient, retryInterval: 50 });
    await eventually(async () => expect(await locks.health()).toMatchObject({ wakeUps: false }));
    // What each poll adds behind it would pile up.
    await locks.store.mutex.wakeUps!.open(() => undefined);
    await lease.release();
    await (await waiting).release();
    await eventually(() => expect(warn).toHaveBeenCalledWith(expect.stringMatching(/waiters cannot be woken and poll instead: (the connection does not listen within|Postgres: Query read timeout)/))); // prettier-ignore
    expect(warn).toHaveBeenCalledTimes(1);
    impostor.swallows = undefined;
    await eventually(async () => expect(await locks.health()).toMatchObject({ wakeUps: true }));
    await Promise.all([locks, others].map((each) => each.close()));
    impostor.close();
    await server.stop();
  },
);
