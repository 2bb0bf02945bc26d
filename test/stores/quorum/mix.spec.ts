import { Locks, type LockStore } from 'nestjs-distributed-lock/core';
import { postgresSchema, postgresStore } from 'nestjs-distributed-lock/postgres';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { redisStore } from 'nestjs-distributed-lock/redis';
import pg from 'pg';
import { forkChild, type Child } from '../../support/child.js';
import { eventually } from '../../support/eventually.js';
import { startPostgres, type PostgresServer } from '../../support/postgres-server.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import type { MixArgs, MixMessage } from './mix.child.js';

/** Short, so that servers are soon old enough to vote. */
const quorum = { quarantine: 5_000, memberTimeout: 2_000 };
const options = { keyTimeout: 5_000, waitTimeout: 60_000 };
const requestTimeout = quorum.memberTimeout;

let redis: RedisServer[];
let postgres: PostgresServer[];
/** The counter is on a server that no fault strikes. */
let counter: PostgresServer;
let counting: pg.Pool;
const ends: (() => unknown)[] = [];
let keys = 0;

beforeAll(async () => {
  redis = await Promise.all([startRedis(), startRedis()]);
  postgres = await Promise.all([startPostgres(), startPostgres()]);
  counter = await startPostgres();
  for (const { connection } of postgres) {
    const client = new pg.Client(connection);
    await client.connect();
    await client.query(postgresSchema());
    await client.end();
  }
  counting = new pg.Pool({ ...counter.connection, max: 2 });
});
async function closeAll(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
}
afterEach(closeAll);
afterAll(async () => {
  await counting.end();
  await Promise.all([...redis, ...postgres, counter].map((server) => server.stop()));
});

const isRedis = (server: RedisServer | PostgresServer): server is RedisServer => redis.includes(server as RedisServer);
const storeOf = (server: RedisServer | PostgresServer): LockStore =>
  isRedis(server) ? redisStore({ options: server.connection, requestTimeout }) : postgresStore({ url: server.url, requestTimeout });

describe.each<[string, () => (RedisServer | PostgresServer)[]]>([
  ['two Redis servers and Postgres', () => [redis[0]!, postgres[0]!, redis[1]!]],
  ['Redis and two Postgres servers', () => [postgres[0]!, redis[0]!, postgres[1]!]],
])('a quorum of %s', (_what, serversOf) => {
  const open = (): Locks => {
    const locks = new Locks(quorumStore(serversOf().map(storeOf), quorum), { logger: false, shutdownTimeout: 0 });
    ends.push(() => locks.close());
    return locks;
  };
  /** A key, and two apps for it. The servers are old enough to vote. */
  async function two(): Promise<{ key: string; one: Locks; other: Locks }> {
    const [one, other] = [open(), open()];
    for (const locks of [one, other]) await locks.using(`warm:${++keys}`, () => undefined, { ...options, retryInterval: 100 });
    return { key: `mix:${++keys}`, one, other };
  }

  // The order of arrival is what the contract tests, under virtual time: members that are slow may pass a waiter over.
  it.each([0, 1, 2])('grants a key to one owner at a time, also while member %d hangs or is dead', async (index) => {
    const { key, one, other } = await two();
    const server = serversOf()[index]!;
    let last = 0;
    const work = async (): Promise<void> => {
      const lease = await one.acquire(key, options);
      expect(lease.fencingToken!).toBeGreaterThan(last);
      last = lease.fencingToken!;
      expect(await other.tryAcquire(key, options)).toBeNull();
      const next = other.acquire(key, { ...options, fair: true, retryInterval: 100 });
      await lease.renew();
      await lease.release();
      const second = await next;
      expect(second.fencingToken!).toBeGreaterThan(last);
      last = second.fencingToken!;
      await second.release();
    };
    await work();
    await server.pause();
    await work().finally(() => server.resume());
    await server.kill();
    await work().finally(() => server.restart());
    await work();
  });
});

it('the callers of two processes lose no update, while each member is killed once or hangs', async () => {
  await counting.query('CREATE TABLE mix AS SELECT 0 AS n, 0::bigint AS token');
  await counting.query('CREATE TABLE mix_entries (n int, token bigint)');
  const servers = [redis[0]!, postgres[0]!, redis[1]!];
  const members = servers.map((server) => (isRedis(server) ? { redis: server.connection } : { postgres: server.url }));
  const args: MixArgs = { members, quorum, counter: counter.url, key: 'crowd', callers: 25, turns: 4 };
  const children: Child<MixMessage>[] = [];
  ends.push(() => Promise.all(children.map((child) => child.kill().catch(() => child.exit))));
  for (let n = 0; n < 2; n++)
    children.push(await forkChild<MixMessage>('test/stores/quorum/mix.child.ts', { args: [JSON.stringify(args)] }));
  for (const child of children) await child.waitFor('ready');
  for (const child of children) child.send({ begin: true });
  const entries = async (): Promise<number> =>
    (await counting.query<{ n: number }>('SELECT count(*)::int AS n FROM mix_entries')).rows[0]!.n;
  const total = 2 * args.callers * args.turns;
  const at = (share: number) => eventually(async () => expect(await entries()).toBeGreaterThan(share * total));
  await at(0.05);
  await servers[1]!.kill();
  await at(0.3);
  await servers[1]!.restart();
  await servers[0]!.pause();
  await at(0.6);
  await servers[0]!.resume();
  await servers[2]!.pause();
  await at(0.8);
  await servers[2]!.resume();
  for (const child of children) await child.waitFor('done');
  const { rows } = await counting.query<{ n: number; token: string }>('SELECT n, token FROM mix_entries ORDER BY token');
  expect(rows.map(({ n }) => n)).toEqual(Array.from({ length: total }, (_, index) => index + 1));
  expect(new Set(rows.map(({ token }) => token)).size).toBe(total);
});
