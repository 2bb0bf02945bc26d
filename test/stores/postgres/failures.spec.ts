import { readFileSync, writeFileSync } from 'node:fs';
import type { StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { postgresUrl, type PostgresServer, startPostgres } from '../../support/postgres-server.js';
import { startProxy, type TcpProxy } from '../../support/tcp-proxy.js';
import { POSTGRES } from '../../support/tcp-proxy-framing.js';
import { changeOf, exchange, newKey, usePostgres } from './setting.js';

let server: PostgresServer;
const setting = usePostgres(async () => (server = await startPostgres({ port: 'free' })));
afterAll(() => server.stop());

const refusalOf = (work: Promise<unknown>): Promise<StoreError> =>
  work.then(
    () => {
      throw new Error('it should have been rejected');
    },
    (error: unknown) => error as StoreError,
  );

describe('a connection', () => {
  let proxy: TcpProxy;
  let url: string;
  beforeAll(async () => {
    proxy = await startProxy({ port: server.port! }, undefined, POSTGRES);
    url = postgresUrl({ ...server.connection, port: proxy.port });
  });
  afterEach(() => proxy.heal());
  afterAll(() => proxy.close());

  it.each(['reset', 'silence'] as const)('that loses a reply (%s) leaves the outcome open, and is replaced', async (then) => {
    const table = setting.open({ url, requestTimeout: 300 });
    const key = newKey();
    const { version } = await exchange(table, { key, record: 'one' });
    for (const [change, record] of [
      [{ key, expected: version, record: 'two' }, 'two'],
      [{ key: `${key}:new`, record: 'new' }, 'new'],
    ] as const) {
      const loss = proxy.dropReplyTo(change.key, { then });
      const error = await refusalOf(exchange(table, change));
      expect(error).toMatchObject({ name: 'StoreError', transient: true, isUnsent: false });
      expect(loss.lost).toBe(1);
      expect(await exchange(table, { key: change.key, expected: undefined })).toMatchObject({ record });
    }
    // The one that is silent is closed.
    await eventually(() => expect(proxy.connections).toBe(1));
  });

  it('that is half open costs a request timeout, and is closed', async () => {
    const table = setting.open({ url, requestTimeout: 200 });
    await Promise.all([1, 2].map(() => exchange(table, {})));
    proxy.blackhole();
    const start = performance.now();
    const errors = await Promise.all([1, 2].map(() => refusalOf(exchange(table, {}))));
    for (const error of errors) expect(error).toMatchObject({ transient: true, isUnsent: false });
    expect(performance.now() - start).toBeLessThan(600);
    expect(await refusalOf(exchange(table, {}))).toMatchObject({ transient: true, isUnsent: true });
    await proxy.heal();
    expect(await exchange(table, {})).toMatchObject({ written: true });
    await eventually(() => expect(proxy.connections).toBe(1));
  });

  it('that is refused is not sent to, and is made within a second of the return', async () => {
    const table = setting.open({ url });
    proxy.refuse();
    proxy.cut();
    expect(await refusalOf(exchange(table, {}))).toMatchObject({
      transient: true,
      isUnsent: true,
      message: expect.stringMatching(/ECONNREFUSED/),
    });
    await proxy.heal();
    expect(await exchange(table, {})).toMatchObject({ written: true });
  });
});

it('a server that restarts is used again, and the outage is told', async () => {
  const table = setting.open();
  const told: string[] = [];
  const stop = table.watchState((reason) => told.push(reason === undefined ? 'back' : 'away'));
  const key = newKey();
  const { version } = await exchange(table, { key, record: 'one' });
  await server.kill();
  expect((await refusalOf(exchange(table, { key, expected: version }))).transient).toBe(true);
  await eventually(() => expect(told).toEqual(['away']));
  await server.restart();
  await eventually(() => expect(told).toEqual(['away', 'back']));
  stop();
  expect(await exchange(table, { key, expected: version, record: 'two' })).toMatchObject({ written: true });
});

it('a server that stands still does not answer, and nothing more is sent', async () => {
  const table = setting.open({ requestTimeout: 300 });
  await exchange(table, {});
  server.pause();
  try {
    expect(await refusalOf(exchange(table, {}))).toMatchObject({ transient: true, isUnsent: false });
    expect(await refusalOf(exchange(table, {}))).toMatchObject({ transient: true, isUnsent: true });
  } finally {
    server.resume();
  }
  expect(await exchange(table, {})).toMatchObject({ written: true });
});

describe('is refused for good', () => {
  it.each([
    ['a user that there is not', { user: 'nobody' }, /role "nobody" does not exist/],
    ['a database that there is not', { database: 'nothing' }, /database "nothing" does not exist/],
  ])('%s', async (_name, part, message) => {
    const table = setting.open({ url: postgresUrl({ ...server.connection, ...part }) });
    expect(await refusalOf(exchange(table, {}))).toMatchObject({ transient: false, message: expect.stringMatching(message) });
  });

  it('a wrong password', async () => {
    await setting.sql(`CREATE ROLE locker LOGIN PASSWORD 'right'`);
    await setting.sql(`GRANT SELECT, INSERT, UPDATE, DELETE ON distributed_lock TO locker`);
    const file = `${server.data}/pg_hba.conf`;
    writeFileSync(file, `host all locker all scram-sha-256\n${readFileSync(file, 'utf8')}`);
    await setting.sql('SELECT pg_reload_conf()');
    const url = (password: string) => server.url.replace('postgres@', `locker${password}@`);
    await eventually(async () => {
      for (const password of [':wrong', '']) {
        expect(await refusalOf(exchange(setting.open({ url: url(password) }), {}))).toMatchObject({ transient: false });
      }
    });
    const table = setting.open({ url: url(':right') });
    expect(await exchange(table, {})).toMatchObject({ written: true });
    await table.wakeUps!.open(() => undefined);
    expect(table.wakeUps!.isOpen).toBe(true);
    const pool = setting.pool({ user: 'locker', password: 'right' });
    const other = setting.open({ pool });
    await other.wakeUps!.open(() => undefined);
    expect(other.wakeUps!.isOpen).toBe(true);
    await setting.sql('REVOKE ALL ON distributed_lock FROM locker');
    expect(await refusalOf(exchange(table, {}))).toMatchObject({ transient: false, message: expect.stringMatching(/permission denied/) });
  });

  it('a table that there is not: the error says what to run', async () => {
    const table = setting.open({ table: 'missing.locks' });
    const error = await refusalOf(exchange(table, {}));
    expect(error).toMatchObject({ name: 'StoreError', transient: false });
    const sql = /CREATE TABLE[^;]*;/.exec(error.message)![0];
    await setting.sql('CREATE SCHEMA missing');
    await setting.sql(sql);
    expect(await exchange(table, {})).toMatchObject({ written: true });
  });
});

it('creates the table where that is wanted, by several at once', async () => {
  const tables = Array.from({ length: 6 }, () => setting.open({ table: 'created', schema: 'create' }));
  const key = newKey();
  const found = await Promise.all(tables.map((table) => exchange(table, { key })));
  expect(found.filter(({ written }) => written)).toHaveLength(1);
});

describe('a standby', () => {
  let standby: PostgresServer;
  beforeAll(async () => {
    standby = await server.standby();
  });
  afterAll(() => standby.stop());

  it('is an outage, for nothing is written there; waiters poll, with one warning, until it is promoted', async () => {
    const table = setting.open({ url: standby.url });
    expect(await refusalOf(exchange(table, {}))).toMatchObject({ transient: true, message: expect.stringMatching(/read-only|recovery/) });
    const warnings: string[] = [];
    await table.wakeUps!.open((message) => warnings.push(message));
    expect(table.wakeUps!.isOpen).toBe(false);
    expect(table.wakeUps!.state).toBe('interrupted');
    expect(await table.describe()).toMatchObject({
      wakesWaiters: false,
      advice: expect.arrayContaining([expect.stringMatching(/standby/)]),
    });
    expect((await setting.open().describe()).advice).toEqual(
      expect.arrayContaining([expect.stringMatching(/asynchronous/), expect.stringMatching(/fsync/)]),
    );
    await eventually(() => expect(standby.log().match(/LISTEN/g)!.length).toBeGreaterThanOrEqual(2));
    await standby.promote();
    expect(await exchange(table, changeOf({}))).toMatchObject({ written: true });
    await eventually(() => expect(table.wakeUps!.isOpen).toBe(true), { within: 15_000 });
    expect(warnings).toEqual([expect.stringMatching(/^Postgres waiters cannot be woken for now and poll instead: .*recovery/)]);
    expect(standby.log().match(/LISTEN/g)!.length).toBeLessThanOrEqual(12);
  });
});
