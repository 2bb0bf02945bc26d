import { readFileSync, writeFileSync } from 'node:fs';
import { Locks } from 'nestjs-distributed-lock/core';
import { PostgresBus } from '../../../lib/stores/postgres/postgres.bus.js';
import { clientTo } from '../../../lib/stores/postgres/postgres.connection.js';
import { storeErrorOf } from '../../../lib/stores/postgres/postgres.errors.js';
import { listenWith, overClient } from '../../../lib/stores/postgres/postgres.listener.js';
import { postgresSchema } from '../../../lib/stores/postgres/postgres.store.js';
import { recordStore } from '../../../lib/stores/records/record.store.js';
import { VOID } from '../../../lib/stores/records/record.table.js';
import { forkChild } from '../../support/child.js';
import { eventually, staysTrue } from '../../support/eventually.js';
import { startPgbouncer } from '../../support/pgbouncer.js';
import { postgresUrl } from '../../support/postgres-server.js';
import { changeOf, exchange, newKey, refusalOf, useOwnPostgres, wakes } from './setting.js';

const own = useOwnPostgres();
const { setting, listening } = own;

const listeners = () =>
  setting.sql(`SELECT pid, state, query FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND pid <> pg_backend_pid()`);

it.each(['reset', 'silence'] as const)('a connection that loses a reply (%s) leaves the outcome open, and is replaced', async (then) => {
  const table = setting.open({ url: own.url, requestTimeout: 2_000 });
  const key = newKey();
  const { version } = await exchange(table, { key, record: 'one' });
  for (const [change, record] of [
    [{ key, expected: version, record: 'two' }, 'two'],
    [{ key: `${key}:new`, record: 'new' }, 'new'],
  ] as const) {
    const loss = own.proxy.dropReplyTo(change.key, { then });
    const error = await refusalOf(exchange(table, change));
    expect(error).toMatchObject({ name: 'StoreError', transient: true, isUnsent: false });
    expect(loss.lost).toBe(1);
    expect(await exchange(table, { key: change.key, expected: undefined })).toMatchObject({ record });
  }
  // The one that is silent is closed.
  await eventually(() => expect(own.proxy.connections).toBe(1));
});

it('a store connects to nothing before the first request', async () => {
  const { made } = own.proxy;
  const table = setting.open({ url: own.url });
  await staysTrue(() => own.proxy.made === made);
  await exchange(table, {});
  expect(own.proxy.made).toBe(made + 1);
});

it('a server that restarts is used again, and the outage is reported', async () => {
  const table = setting.open();
  const warn = jest.fn<void, [string]>();
  const locks = new Locks(recordStore(setting.open()), { logger: { warn, error: warn } });
  setting.closes(() => locks.close());
  const key = newKey();
  const { version } = await exchange(table, { key, record: 'one' });
  await own.server.kill();
  expect((await refusalOf(exchange(table, { key, expected: version }))).transient).toBe(true);
  const refused = { transient: true, isUnsent: true, message: expect.stringMatching(/ECONNREFUSED/) };
  expect(await refusalOf(locks.acquire(newKey(), { waitTimeout: 0 }))).toMatchObject(refused);
  const away = [expect.stringMatching(/^Postgres does not answer since .+Z: connect .+; locks wait \[NDL_STORE_AWAY\]$/)];
  await eventually(() => expect(warn.mock.calls).toEqual([away]));
  await own.server.restart();
  await eventually(() => expect(warn.mock.calls).toEqual([away, [expect.stringMatching(/^Postgres answers again after /)]]));
  expect(await exchange(table, { key, expected: version, record: 'two' })).toMatchObject({ written: true });
});

it.each(['XX000', '58000', 'ZZ999'])(
  'error %s, as of a pooler whose server is away, is waited for, and keeps no key taken (G7, G9)',
  async (state) => {
    const [locks, others] = [1, 2].map(() => new Locks(recordStore(setting.open()), { logger: false })) as [Locks, Locks];
    for (const each of [locks, others]) setting.closes(() => each.close());
    const long = { keyTimeout: 300_000, waitTimeout: Infinity, retryInterval: 50 };
    const unknown: string[] = [];
    locks.on('unknown', ({ operation }) => unknown.push(operation));
    const [key, free] = [newKey(), newKey()];
    const lease = await locks.acquire(key, long);
    const raise = `BEGIN RAISE EXCEPTION 'no server' USING ERRCODE = '${state}'; END`;
    await setting.sql(`CREATE OR REPLACE FUNCTION away() RETURNS trigger LANGUAGE plpgsql AS $$ ${raise} $$`);
    await setting.sql('CREATE TRIGGER away BEFORE INSERT OR UPDATE ON distributed_lock FOR EACH ROW EXECUTE FUNCTION away()');
    const waiting = locks.acquire(free, long);
    expect(await lease.release()).toBe(true);
    await eventually(() => expect(unknown).toContain('release'));
    await setting.sql('DROP TRIGGER away ON distributed_lock');
    await (await waiting).release();
    // Its lease would last for five minutes.
    await (await others.acquire(key, long)).release();
  },
);

it.each(['42501', '42P01', '22P02', '28P01', '3D000', '0A000'])('error %s is final', (code) => {
  expect(storeErrorOf(Object.assign(new Error('text'), { code }))).toMatchObject({ transient: false, isRefusal: true });
});

it.each([
  ['SELECT r.* FROM "ssl_locks" t WHERE t.key = $1 - read ECONNRESET', true],
  ['Failed query: SELECT 1\nparams: certificate:42', true],
  ['self-signed certificate in certificate chain', false],
  ["Hostname/IP does not match certificate's altnames: Host: db. is not in the cert's altnames", false],
  ['The server does not support SSL connections', false],
  ['SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string', false],
])('an error of the client, %s, passes: %s', (text, transient) => {
  expect(storeErrorOf(new Error(text))).toMatchObject({ transient });
});

it('a key with a character that the database does not know fails alone, and not those that go together with it', async () => {
  await setting.sql(`CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'`);
  const table = setting.open({ url: postgresUrl({ ...own.server.connection, database: 'latin' }), schema: 'create' });
  await exchange(table, {});
  for (const expected of [undefined, VOID]) {
    const found = table.exchange(['order:1', 'Zo\u00eb', 'Zo\u00eb \u20ac'].map((key) => changeOf({ key, expected })));
    const outcomes = await Promise.allSettled(found);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect(outcomes[2]).toMatchObject({ reason: { name: 'StoreError', transient: false } });
  }
});

it.each([1, 3])('where the queue of notifications is full, changes (%d) are made, and waiters are left to poll', async (count) => {
  // The server's own has 8 GB. This schema is searched before that of the server.
  await setting.sql(`CREATE SCHEMA IF NOT EXISTS full_queue;
    CREATE OR REPLACE FUNCTION full_queue.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS
    $$ BEGIN RAISE 'too many notifications in the NOTIFY queue' USING ERRCODE = '54000'; END $$`);
  const table = setting.open({ url: `${own.server.url}?options=-c%20search_path%3Dfull_queue,pg_catalog,public` });
  const keys = Array.from({ length: count }, newKey);
  const rows = await Promise.all(table.exchange(keys.map((key) => changeOf({ key }))));
  const messages = [{ inbox: 'distributed_lock_nobody', text: 'owner' }];
  const changes = keys.map((key, i) => changeOf({ key, expected: rows[i]!.version, record: 'next', messages }));
  expect((await Promise.all(table.exchange(changes))).map(({ written }) => written)).toEqual(keys.map(() => true));
  await expect(table.bus!.publish('ops', 'text')).rejects.toMatchObject({ message: expect.stringMatching(/NOTIFY queue/) });
});

/** By the app, in a transaction. */
async function tableLock() {
  const blocker = await setting.pool().connect();
  setting.closes(async () => blocker.release(true));
  await blocker.query('BEGIN; LOCK TABLE distributed_lock');
  return blocker;
}
const waiting = () => setting.sql(`SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'`);

it.each(['directly', 'through a pooler'])(
  'statements that wait for a lock of the app are cancelled (%s), and never more than `max` wait',
  async (way) => {
    const bouncer = way === 'directly' ? undefined : await startPgbouncer({ to: own.server.connection });
    if (bouncer) setting.closes(() => bouncer.stop());
    const table = setting.open({ url: bouncer?.url ?? own.url, max: 2, prepare: false, requestTimeout: 2_000 });
    const blocker = await tableLock();
    for (let round = 0; round < 2; round++) {
      const errors = Promise.all(Array.from({ length: 6 }, () => refusalOf(exchange(table, {}))));
      await eventually(async () => expect(await waiting()).toHaveLength(2));
      await staysTrue(async () => (await waiting()).length <= 2);
      for (const error of await errors) expect(error).toMatchObject({ name: 'StoreError', transient: true });
      expect((await errors).some((error) => error.isUnsent)).toBe(true);
      await eventually(async () => expect(await waiting()).toEqual([]));
    }
    await blocker.query('COMMIT');
    await eventually(async () => expect(await exchange(table, {})).toMatchObject({ written: true }));
  },
);

it('an inbox that is closed while its client is loaded does not connect', async () => {
  const { made } = own.proxy;
  const source = overClient(() => clientTo({ connectionString: own.url }, 2_000));
  const bus = new PostgresBus('inbox', 'locks', 2_000, () => Promise.resolve(), () => Promise.resolve(true)); // prettier-ignore
  const inbox = listenWith(source, 'inbox', bus, () => undefined);
  inbox.close();
  await inbox.listening;
  await staysTrue(() => own.proxy.made === made, 200);
});

it('a connection whose statement was cancelled is used again', async () => {
  const table = setting.open({ url: own.url, max: 1, requestTimeout: 2_000 });
  await tableLock();
  await eventually(async () => {
    const errors: unknown[] = [];
    const pids: unknown[] = [];
    for (let round = 0; round < 2; round++) {
      const error = refusalOf(exchange(table, {}));
      await eventually(async () => pids.push((await waiting())[0]!['pid']));
      errors.push(await error);
      await eventually(async () => expect(await waiting()).toEqual([]));
    }
    expect(errors).toEqual(Array(2).fill(expect.objectContaining({ transient: true })));
    expect(pids[1]).toBe(pids[0]);
  });
});

/** A user of the table, who is asked for a password. */
async function roleWithPassword(role: string, password: string): Promise<void> {
  await setting.sql(`CREATE ROLE ${role} LOGIN PASSWORD '${password}'`);
  await setting.sql(`GRANT SELECT, INSERT, UPDATE, DELETE ON distributed_lock TO ${role}`);
  const file = `${own.server.data}/pg_hba.conf`;
  writeFileSync(file, `host all ${role} all scram-sha-256\n${readFileSync(file, 'utf8')}`);
  await setting.sql('SELECT pg_reload_conf()');
}

describe('is refused for good', () => {
  it.each([
    ['a user that there is not', { user: 'nobody' }, /role "nobody" does not exist/],
    ['a database that there is not', { database: 'nothing' }, /database "nothing" does not exist/],
  ])('%s', async (_name, part, message) => {
    const table = setting.open({ url: postgresUrl({ ...own.server.connection, ...part }) });
    expect(await refusalOf(exchange(table, {}))).toMatchObject({ transient: false, message: expect.stringMatching(message) });
  });

  it('a wrong password', async () => {
    await roleWithPassword('locker', 'right');
    const url = (password: string) => own.server.url.replace('postgres@', `locker${password}@`);
    await eventually(async () => {
      for (const password of [':wrong', '']) {
        expect(await refusalOf(exchange(setting.open({ url: url(password) }), {}))).toMatchObject({ transient: false });
      }
    });
    const table = setting.open({ url: url(':right') });
    expect(await exchange(table, {})).toMatchObject({ written: true });
    await table.wakeUps!.open(() => undefined);
    expect(table.wakeUps!.isOpen).toBe(true);
    await setting.sql('REVOKE ALL ON distributed_lock FROM locker');
    expect(await refusalOf(exchange(table, {}))).toMatchObject({
      transient: false,
      isRefusal: true,
      message: expect.stringMatching(/permission denied .+Grant/),
    });
  });

  it('a schema in which it may not make the table: the error names the right', async () => {
    await setting.sql('CREATE SCHEMA closed');
    await setting.sql('CREATE ROLE maker LOGIN');
    await setting.sql('GRANT USAGE ON SCHEMA closed TO maker');
    const table = setting.open({ url: own.server.url.replace('postgres@', 'maker@'), table: 'closed.locks', schema: 'create' });
    const denied = expect.stringMatching(/permission denied for schema closed.* CREATE to make the table, on its schema/);
    expect(await refusalOf(exchange(table, {}))).toMatchObject({ transient: false, isRefusal: true, message: denied });
  });

  it('a table that there is not: the error says what to run', async () => {
    const table = setting.open({ table: 'missing.locks' });
    const error = await refusalOf(exchange(table, {}));
    expect(error).toMatchObject({ name: 'StoreError', transient: false, isRefusal: true });
    const sql = /CREATE TABLE[^;]*;/.exec(error.message)![0];
    await setting.sql('CREATE SCHEMA missing');
    await setting.sql(sql);
    expect(await exchange(table, {})).toMatchObject({ written: true });
  });
});

it.each(['text', 'function'])('a password (%s) that the app has renewed in its pool is used from the next connection on', async (kind) => {
  const role = `renewed_${kind}`;
  await roleWithPassword(role, 'first');
  const passwordOf = (text: string) => (kind === 'text' ? text : () => Promise.resolve(text));
  const pool = setting.pool({ user: role, password: passwordOf('wrong') });
  const table = setting.open({ pool });
  await eventually(async () => expect(await refusalOf(exchange(table, {}))).toMatchObject({ transient: false }));
  for (const password of ['first', 'second']) {
    await setting.sql(`ALTER ROLE ${role} PASSWORD '${password}'`);
    pool.options.password = passwordOf(password);
    await setting.sql('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1', [role]);
    await eventually(async () => expect(await exchange(table, {})).toMatchObject({ written: true }));
    await table.wakeUps!.open(() => undefined);
    await eventually(() => table.wakeUps!.isOpen);
  }
});

it('with the schema in a URL of Prisma, the table is where the migration of Prisma makes it', async () => {
  await setting.sql('CREATE SCHEMA shop');
  await setting.pool({ options: '-c search_path=shop' }).query(postgresSchema());
  const url = (parameters: string) => own.server.url + (own.server.url.includes('?') ? '&' : '?') + parameters;
  for (const table of [
    setting.open({ url: url('schema=shop') }),
    setting.open({ url: url('a=b&schema=shop&c=d'), table: 'distributed_lock' }),
  ])
    expect(await exchange(table, {})).toMatchObject({ written: true });
  expect(await setting.sql('SELECT 1 FROM shop.distributed_lock')).toHaveLength(2);
  const key = newKey();
  for (const table of [
    setting.open({ url: url('schema=public') }),
    setting.open({ url: url('schema=shop'), table: 'public.distributed_lock' }),
  ])
    await exchange(table, { key });
  expect(await setting.sql('SELECT 1 FROM public.distributed_lock WHERE key = $1', [key])).toHaveLength(1);
});

it.each(['ssl=true', 'sslmode=verify-full'])('a URL with %s asks for TLS, and is refused by a server without it', async (parameter) => {
  const table = setting.open({ url: `${own.server.url}${own.server.url.includes('?') ? '&' : '?'}${parameter}` });
  expect(await refusalOf(exchange(table, {}))).toMatchObject({ transient: false, message: expect.stringContaining('support SSL') });
});

it('creates the table where that is wanted, by several at once', async () => {
  const tables = Array.from({ length: 6 }, () => setting.open({ table: 'created', schema: 'create' }));
  const key = newKey();
  const found = await Promise.all(tables.map((table) => exchange(table, { key })));
  expect(found.filter(({ written }) => written)).toHaveLength(1);
});

it('an inbox is a connection that is idle, on which messages arrive, and which a check leaves open', async () => {
  const one = await listening();
  const before = await listeners();
  expect(before).toEqual([{ pid: expect.any(Number), state: 'idle', query: `LISTEN "${one.inbox}"` }]);
  one.wakeUps.check();
  await wakes(setting.open(), one);
  expect([await listeners(), one.wakeUps.isOpen]).toEqual([before, true]);
  await one.table.close();
  await eventually(async () => (await listeners()).length === 0);
});

it('an inbox whose connection was ended is opened again, and all waiters ask', async () => {
  const one = await listening();
  const before = one.heard.length;
  const [{ pid }] = (await listeners()) as [{ pid: number }];
  await setting.sql('SELECT pg_terminate_backend($1)', [pid]);
  await eventually(() => one.heard.length > before && one.wakeUps.isOpen);
  await wakes(setting.open(), one);
  expect(one.warnings).toEqual([]);
});

it('checks of an inbox are ten seconds apart: the server wakes all that listen for each', async () => {
  const { wakeUps } = await listening();
  const echo = jest.spyOn(wakeUps as unknown as { echo(): Promise<boolean> }, 'echo');
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] });
  try {
    for (let second = 0; second < 20; second++) {
      wakeUps.check();
      jest.advanceTimersByTime(1_000);
    }
  } finally {
    jest.useRealTimers();
  }
  expect(echo).toHaveBeenCalledTimes(2);
});

it('an inbox is closed when nobody has waited for five minutes, and opened with the next wait', async () => {
  const table = setting.open();
  const wakeUps = table.wakeUps!;
  const waits = async () => {
    const stop = wakeUps.listen('owner', () => undefined);
    await wakeUps.open(() => undefined);
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] });
    stop();
    jest.advanceTimersByTime(300_000);
    jest.useRealTimers();
  };
  for (let round = 0; round < 2; round++) {
    await waits();
    expect(wakeUps.isOpen).toBe(false);
    await eventually(async () => (await listeners()).length === 0);
  }
  // For operators it stays open.
  await table.bus!.open(() => undefined);
  await waits();
  expect(wakeUps.isOpen).toBe(true);
});

it('an inbox that was opened for a caller that got its key before, or for leases that are renewed, is closed after five minutes, too', async () => {
  const wakeUps = setting.open().wakeUps!;
  jest.useFakeTimers({ advanceTimers: true, doNotFake: ['nextTick', 'setImmediate'] });
  try {
    await wakeUps.open(() => undefined);
    // Each renewal opens it.
    for (let renewal = 0; renewal < 3; renewal++) {
      jest.advanceTimersByTime(200_000);
      await wakeUps.open(() => undefined);
      expect(wakeUps.isOpen).toBe(true);
    }
    jest.advanceTimersByTime(300_000);
    expect(wakeUps.isOpen).toBe(false);
  } finally {
    jest.useRealTimers();
  }
});

it('the query of an ORM cannot listen, but with a connection string; with `listen: false` nothing does', async () => {
  const pool = setting.pool();
  const query = (text: string, values: unknown[]) => pool.query(text, values);
  for (const options of [{ query }, { listen: false as const }]) expect(setting.open(options).wakeUps).toBeUndefined();
  await wakes(setting.open(), await listening({ query, listen: { connectionString: setting.url } }));
});

describe('the bus', () => {
  it('is not notified of another table', async () => {
    const [one, other] = [await listening(), await listening({ table: 'other_locks' })];
    const heard: string[] = [];
    for (const { table } of [one, other]) await table.bus!.listen('ops', (text) => heard.push(text));
    await other.table.bus!.publish('ops', 'other');
    await one.table.bus!.publish('ops', 'one');
    await eventually(() => expect(new Set(heard)).toEqual(new Set(['one', 'other'])));
    expect(heard).toHaveLength(2);
  });

  it('carries texts of any length to all listeners, also after they have connected again', async () => {
    const [one, other] = [await listening(), await listening()];
    const [heard, alsoHeard]: [string[], string[]] = [[], []];
    const stop = await one.table.bus!.listen('ops', (text) => heard.push(text));
    await other.table.bus!.listen('ops', (text) => alsoHeard.push(text));
    expect(await one.table.bus!.open(() => undefined)).toBe(true);
    const texts = ['short', JSON.stringify({ id: 'x'.repeat(7_870) }), '🔒ü'.repeat(20_000), ''];
    for (const text of texts) await one.table.bus!.publish('ops', text);
    const lengths = (all: string[]) => all.map(({ length }) => length);
    await eventually(() => expect([heard, alsoHeard].map(lengths)).toEqual([texts, texts].map(lengths)));
    expect([heard, alsoHeard].every((all) => all.every((text, i) => text === texts[i]))).toBe(true);
    await setting.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND pid <> pg_backend_pid()`);
    await eventually(async () => (await listeners()).length === 2 && one.wakeUps.isOpen && other.wakeUps.isOpen);
    stop();
    // A connection that is being ended may still count above, and loses what it gets.
    await eventually(async () => {
      await one.table.bus!.publish('ops', 'last');
      expect(alsoHeard.at(-1)).toBe('last');
    });
    expect(heard).not.toContain('last');
  });
});

it('a process that has waited ends by itself, though it closes nothing', async () => {
  const child = await forkChild('test/stores/postgres/ends.child.ts', { args: [setting.url] });
  expect(await child.exit).toEqual({ code: 0, signal: null });
});
