import { recordTableContract } from 'nestjs-distributed-lock/testing/store';
import { eventually, staysTrue } from '../../support/eventually.js';
import { type PostgresServer, startPostgres } from '../../support/postgres-server.js';
import { openTable } from '../../../lib/stores/postgres/postgres.open.js';
import { type Change, RecordSweep, VOID } from '../../../lib/stores/records/record.table.js';
import { changeOf, exchange, HOUR, newKey, usePostgres } from './setting.js';

// Nobody else writes to this server, and it flushes nothing by itself for a while.
let server: PostgresServer;
const setting = usePostgres(async () => (server = await startPostgres({ config: ['autovacuum = off', 'wal_writer_delay = 10s'] })));
afterAll(() => server.stop());

async function number(text: string): Promise<number> {
  return Number(Object.values((await setting.sql(text))[0]!)[0]);
}
const walBytes = () => number(`SELECT pg_current_wal_insert_lsn() - '0/0'`);
/** Bytes of the log that are not on disk yet. */
const unflushed = () => number('SELECT pg_current_wal_insert_lsn() - pg_current_wal_flush_lsn()');
const flush = () => setting.sql('CREATE TABLE IF NOT EXISTS any_table (); DROP TABLE any_table');

it('a read, and a change that is refused, write nothing', async () => {
  const table = setting.open();
  const keys = Array.from({ length: 20 }, newKey);
  const found = await Promise.all(keys.map((key) => exchange(table, { key })));
  await setting.sql('VACUUM distributed_lock');
  const refused = [
    ...keys.map((key) => changeOf({ key })),
    ...keys.map((key) => changeOf({ key, expected: '1' })),
    ...keys.map((key) => changeOf({ key, expected: undefined })),
    ...keys.map((key, i) => changeOf({ key, expected: found[i]!.version, notBefore: 8e12 })),
    changeOf({ notBefore: 8e12 }),
  ];
  const before = await walBytes();
  for (const change of refused) expect((await exchange(table, change)).written).toBe(false);
  for (let start = 0; start < refused.length; start += 20) await Promise.all(table.exchange(refused.slice(start, start + 20)));
  expect((await walBytes()) - before).toBe(0);
});

describe.each([
  ['one', 1],
  ['several', 5],
])('%s at a time', (_name, count) => {
  const inbox = 'distributed_lock_nobody';
  const write = async (change: Partial<Change>) => {
    const table = setting.open();
    const made = await Promise.all(table.exchange(Array.from({ length: count }, () => changeOf(change))));
    const keys = Array.from({ length: count }, newKey);
    const rows = await Promise.all(table.exchange(keys.map((key) => changeOf({ key }))));
    await flush();
    const swaps = keys.map((key, i) => changeOf({ ...change, key, expected: rows[i]!.version }));
    return { table, made, swaps };
  };

  it.each([[[]], [[{ inbox, text: 'nobody' }]]])('lazy changes do not wait for the disk, others do, messages: %j', async (messages) => {
    const { table, swaps } = await write({ messages });
    expect((await Promise.all(table.exchange(swaps))).every(({ written }) => written)).toBe(true);
    expect(await unflushed()).toBe(0);
    // Every 10 seconds the server flushes by itself, maybe just then.
    await eventually(async () => {
      const lazy = await write({ messages, isLazy: true });
      expect((await Promise.all(lazy.table.exchange(lazy.swaps))).every(({ written }) => written)).toBe(true);
      expect(await unflushed()).toBeGreaterThan(0);
    });
    await flush();
    await eventually(async () => {
      const voids = Array.from({ length: count }, () => changeOf({ messages, isLazy: true }));
      expect((await Promise.all(table.exchange(voids))).every(({ written }) => written)).toBe(true);
      expect(await unflushed()).toBeGreaterThan(0);
    });
    // It was for that statement only.
    await Promise.all(table.exchange(Array.from({ length: count }, () => changeOf({}))));
    expect(await unflushed()).toBe(0);
  });
});

it('changes of one exchange are one commit, lazy ones another', async () => {
  const table = setting.open({ requestTimeout: 30_000 });
  const known = Array.from({ length: 100 }, newKey);
  const found = await Promise.all(known.map((key) => exchange(table, { key })));
  const changes = [
    ...known.map((key, i) => changeOf({ key, expected: found[i]!.version, isLazy: i % 2 === 0 })),
    ...Array.from({ length: 100 }, (_, i) => changeOf({ isLazy: i % 2 === 0 })),
  ];
  expect((await Promise.all(table.exchange(changes))).every(({ written }) => written)).toBe(true);
  const commits = 'SELECT count(DISTINCT xmin::text) AS commits, count(*) AS rows FROM distributed_lock WHERE key = ANY($1)';
  for (const isLazy of [true, false]) {
    const keys = changes.filter((change) => change.isLazy === isLazy).map(({ key }) => key);
    expect(await setting.sql(commits, [keys])).toEqual([{ commits: '1', rows: '100' }]);
  }
});

it('batches of several processes that overlap in orders of their own never wait for each other in a circle', async () => {
  const tables = Array.from({ length: 4 }, () => setting.open());
  for (let round = 0; round < 10; round++) {
    const keys = Array.from({ length: 60 }, newKey);
    const orders = tables.map((_, n) => (n % 2 ? [...keys].reverse() : keys));
    const made = await Promise.all(
      tables.map((table, n) => Promise.all(table.exchange(orders[n]!.map((key) => changeOf({ key, endsAt: 1 }))))),
    );
    const versions = new Map(
      orders
        .flatMap((order, n) => order.map((key, i) => [key, made[n]![i]!] as const))
        .filter(([, { written }]) => written)
        .map(([key, { version }]) => [key, version]),
    );
    expect(versions.size).toBe(keys.length);
    const again = tables.map((table, n) =>
      Promise.all(table.exchange(orders[n]!.map((key, i) => changeOf({ key, expected: (n + i) % 3 ? versions.get(key)! : VOID })))),
    );
    const written = (await Promise.all(again)).flatMap((found, n) => found.flatMap((one, i) => (one.written ? [orders[n]![i]!] : [])));
    expect(new Set(written).size).toBe(written.length);
  }
  expect(server.log()).not.toContain('deadlock detected');
});

it('a batch does not wait for a row that another one is changing', async () => {
  const table = setting.open({ requestTimeout: 2_000 });
  const keys = Array.from({ length: 3 }, newKey);
  const rows = await Promise.all(table.exchange(keys.map((key) => changeOf({ key }))));
  const client = await setting.pool().connect();
  setting.closes(async () => client.release());
  await client.query('BEGIN');
  await client.query('UPDATE distributed_lock SET version = version + 1 WHERE key = $1', [keys[1]]);
  const found = await Promise.all(table.exchange(keys.map((key, i) => changeOf({ key, expected: rows[i]!.version }))));
  expect(found.map(({ written }) => written)).toEqual([true, false, true]);
  await client.query('ROLLBACK');
  expect((await exchange(table, { key: keys[1], expected: rows[1]!.version })).written).toBe(true);
});

it('of a batch that is made in part, only those that are made send their messages', async () => {
  const [table, other] = [setting.open(), setting.open()];
  const heard: string[] = [];
  await other.wakeUps!.open((warning) => heard.push(warning));
  const found = await Promise.all(table.exchange(Array.from({ length: 10 }, () => changeOf({}))));
  expect(found).toHaveLength(10);
  const keys = Array.from({ length: 10 }, newKey);
  const rows = await Promise.all(table.exchange(keys.map((key) => changeOf({ key }))));
  const changes = keys.map((key, i) => {
    other.wakeUps!.listen(`owner ${i}`, () => heard.push(`owner ${i}`));
    const messages = i % 3 === 0 ? [] : [{ inbox: other.wakeUps!.inbox, text: `owner ${i}` }];
    return changeOf({ key, expected: i % 2 ? rows[i]!.version : '1', messages, isLazy: true });
  });
  const made = await Promise.all(table.exchange(changes));
  expect(made.map(({ written }) => written)).toEqual(keys.map((_, i) => i % 2 === 1));
  await eventually(() => expect(heard).toHaveLength(3));
  expect(heard.sort()).toEqual(['owner 1', 'owner 5', 'owner 7']);
});

describe('the sweep', () => {
  const left = async () => (await setting.sql('SELECT key FROM distributed_lock')).map(({ key }) => key as string);
  afterEach(() => jest.restoreAllMocks());

  it('deletes what ended an hour ago, a page at a time, and nothing that another one is changing', async () => {
    await setting.sql('TRUNCATE distributed_lock');
    const table = setting.open();
    const keys = Array.from({ length: 10 }, newKey);
    await Promise.all(keys.map((key) => exchange(table, { key, record: null, endsAt: 0 })));
    await table.sweep();
    expect(await left()).toHaveLength(10);
    await setting.sql('UPDATE distributed_lock SET ends_at = ends_at - $1 WHERE key <> $2', [HOUR + 1, keys[9]]);
    const client = await setting.pool().connect();
    await client.query('BEGIN');
    await client.query('SELECT 1 FROM distributed_lock WHERE key = $1 FOR UPDATE', [keys[0]]);
    await table.sweep(3);
    expect((await left()).sort()).toEqual([keys[0], keys[9]].sort());
    await client.query('COMMIT');
    client.release();
    await table.sweep();
    expect(await left()).toEqual([keys[9]]);
  });

  it('comes with the first request of one process in twenty, as many do not live for long', async () => {
    await setting.sql('TRUNCATE distributed_lock');
    await exchange(setting.open(), { key: 'old', record: null, endsAt: 0 });
    await setting.sql('UPDATE distributed_lock SET ends_at = ends_at - $1', [HOUR + 1]);
    jest.replaceProperty(RecordSweep, 'firstOf', 20);
    jest.spyOn(Math, 'random').mockReturnValueOnce(0.06);
    await exchange(setting.open(), { key: 'new' });
    await staysTrue(async () => (await left()).includes('old'));
    jest.spyOn(Math, 'random').mockReturnValueOnce(0.04);
    await exchange(setting.open(), { key: 'new' });
    await eventually(async () => expect(await left()).toEqual(['new']));
  });
});

recordTableContract('Postgres', () => openTable({ url: setting.url }), {
  sweep: (key) => setting.sql('DELETE FROM distributed_lock WHERE key = $1', [key]),
});
