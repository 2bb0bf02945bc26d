import { Locks } from 'nestjs-distributed-lock/core';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import type { PostgresTable } from '../../../lib/stores/postgres/postgres.table.js';
import { forkChild } from '../../support/child.js';
import { eventually } from '../../support/eventually.js';
import { type Pgbouncer, startPgbouncer } from '../../support/pgbouncer.js';
import { postgresUrl, type PostgresServer, startPostgres } from '../../support/postgres-server.js';
import { startProxy } from '../../support/tcp-proxy.js';
import { POSTGRES } from '../../support/tcp-proxy-framing.js';
import { changeOf, exchange, newKey, usePostgres } from './setting.js';

let server: PostgresServer;
const setting = usePostgres(async () => (server = await startPostgres({ port: 'free' })));
afterAll(() => server.stop());

const listeners = () =>
  setting.sql(`SELECT pid, state, query FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND pid <> pg_backend_pid()`);

/** A table that listens, and what it has heard. */
async function listening(options: Parameters<typeof setting.open>[0] = {}) {
  const table = setting.open(options);
  const wakeUps = table.wakeUps!;
  const warnings: string[] = [];
  const heard: string[] = [];
  await wakeUps.open((message) => warnings.push(message));
  wakeUps.listen('owner', () => heard.push('owner'));
  return { table, wakeUps, warnings, heard, inbox: wakeUps.inbox };
}

async function wakes(by: PostgresTable, { inbox, heard }: Awaited<ReturnType<typeof listening>>) {
  const before = heard.length;
  await exchange(by, { messages: [{ inbox, text: 'owner' }], isLazy: true });
  await eventually(() => heard.length > before);
}

it('an inbox is a connection that is idle, on which messages arrive', async () => {
  const one = await listening();
  expect(one.wakeUps.isOpen).toBe(true);
  await wakes(setting.open(), one);
  expect(await listeners()).toEqual([{ pid: expect.any(Number), state: 'idle', query: `LISTEN ${one.inbox}` }]);
  await one.table.close();
  await eventually(async () => (await listeners()).length === 0);
});

it('an inbox whose connection was ended is opened again, and all who wait ask', async () => {
  const one = await listening();
  const before = one.heard.length;
  const [{ pid }] = (await listeners()) as [{ pid: number }];
  await setting.sql('SELECT pg_terminate_backend($1)', [pid]);
  await eventually(() => one.heard.length > before && one.wakeUps.isOpen);
  await wakes(setting.open(), one);
  expect(one.warnings).toEqual([]);
});

it('an inbox whose connection is half open is found by its own message, and opened again', async () => {
  const proxy = await startProxy({ port: server.port! }, undefined, POSTGRES);
  try {
    const listen = { connectionString: postgresUrl({ ...server.connection, port: proxy.port }) };
    const one = await listening({ listen, requestTimeout: 300 });
    const before = one.heard.length;
    proxy.blackhole();
    await exchange(setting.open(), { messages: [{ inbox: one.inbox, text: 'owner' }] });
    one.wakeUps.check();
    await eventually(() => !one.wakeUps.isOpen);
    expect(one.heard).toHaveLength(before);
    await proxy.heal();
    await eventually(() => one.wakeUps.isOpen && one.heard.length > before);
    await wakes(setting.open(), one);
  } finally {
    await proxy.close();
  }
});

it('a check of an inbox that is in order leaves it open', async () => {
  const one = await listening();
  const [before] = await listeners();
  one.wakeUps.check();
  await wakes(setting.open(), one);
  expect((await listeners())[0]).toEqual(before);
  expect(one.wakeUps.isOpen).toBe(true);
});

it('a pool, and its password, are used to listen', async () => {
  const one = await listening({ pool: setting.pool({ max: 1 }) });
  await wakes(setting.open(), one);
});

it('the query of an ORM cannot listen, but with a connection string', async () => {
  const pool = setting.pool();
  const query = (text: string, values: unknown[]) => pool.query(text, values);
  expect(setting.open({ query }).wakeUps).toBeUndefined();
  await wakes(setting.open(), await listening({ query, listen: { connectionString: setting.url } }));
});

it('a pooler that lends connections for a session wakes', async () => {
  const bouncer = await startPgbouncer({ to: server.connection, poolMode: 'session' });
  setting.closes(() => bouncer.stop());
  const one = await listening({ url: bouncer.url });
  expect(one.wakeUps.isOpen).toBe(true);
  await wakes(setting.open({ url: bouncer.url }), one);
});

describe('behind a pooler that lends connections for a transaction', () => {
  let bouncer: Pgbouncer;
  beforeAll(async () => {
    bouncer = await startPgbouncer({ to: server.connection, config: ['default_pool_size = 3'] });
  });
  afterAll(() => bouncer.stop());

  it('an inbox is not open, though LISTEN was accepted; one warning says so; locks work all the same', async () => {
    const one = await listening({ url: bouncer.url, prepare: false, requestTimeout: 200 });
    expect(one.wakeUps.isOpen).toBe(false);
    expect(one.wakeUps.state).toBe('interrupted');
    await eventually(() => expect(one.warnings).toHaveLength(1), { within: 10_000 });
    expect(one.warnings[0]).toMatch(/^Postgres waiters cannot be woken and poll instead: /);
    const locks = [1, 2].map(() => new Locks(postgresStore({ url: bouncer.url, prepare: false, requestTimeout: 500 }), { logger: false }));
    let inside = 0;
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        locks[i % 2]!.mutex('pooled').using(
          async () => {
            expect(++inside).toBe(1);
            await Promise.resolve();
            inside--;
          },
          { waitTimeout: 20_000 },
        ),
      ),
    );
    await Promise.all(locks.map((each) => each.close()));
    expect(one.warnings).toHaveLength(1);
  });

  it('a direct way to the server wakes', async () => {
    const one = await listening({ url: bouncer.url, prepare: false, listen: { connectionString: setting.url } });
    expect(one.wakeUps.isOpen).toBe(true);
    await wakes(setting.open({ url: bouncer.url, prepare: false }), one);
  });

  it('prepared statements are used no more once they were forgotten, with one warning', async () => {
    const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    try {
      const tables = Array.from({ length: 3 }, () => setting.open({ url: bouncer.url }));
      for (let round = 0; round < 10; round++) {
        const key = newKey();
        const found = await Promise.all(tables.map((table) => exchange(table, { key })));
        expect(found.filter(({ written }) => written)).toHaveLength(1);
      }
      const texts = warned.mock.calls.map(([text]) => String(text)).filter((text) => text.includes('prepare: false'));
      expect(texts.length).toBeGreaterThanOrEqual(1);
      expect(texts.length).toBeLessThanOrEqual(tables.length);
    } finally {
      warned.mockRestore();
    }
  });
});

describe('the bus', () => {
  it('carries texts of any length to all who listen, whoever is connected again', async () => {
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
    await one.table.bus!.publish('ops', 'last');
    await eventually(() => expect(alsoHeard.at(-1)).toBe('last'));
    expect(heard).not.toContain('last');
  });

  it('lets an operator of another process see who holds and waits', async () => {
    const [holds, asks] = [1, 2].map(
      () => new Locks(postgresStore({ url: setting.url }), { app: 'shop', visible: true, logger: false }),
    ) as [Locks, Locks];
    const lease = await holds.acquire('seen', { label: 'Shop.pay' });
    await eventually(async () => {
      const report = await asks.inspect('seen');
      expect(report.holders).toMatchObject([{ owner: lease.owner, told: { label: 'Shop.pay' } }]);
    });
    await Promise.all([holds.close(), asks.close()]);
  });
});

it('a process that has waited ends by itself, though it closes nothing', async () => {
  const child = await forkChild('test/stores/postgres/ends.child.ts', { args: [setting.url] });
  expect(await child.exit).toEqual({ code: 0, signal: null });
});

it('a message leaves only when its change can be seen by others', async () => {
  const one = await listening();
  const seen: Promise<string | null>[] = [];
  const key = newKey();
  const by = setting.open();
  let { version } = await exchange(by, { key, record: '0' });
  one.wakeUps.listen('reader', () => seen.push(exchange(one.table, { key, expected: undefined }).then(({ record }) => record)));
  for (let i = 1; i <= 50; i++) {
    const change = changeOf({ key, expected: version, record: String(i), messages: [{ inbox: one.inbox, text: 'reader' }], isLazy: true });
    ({ version } = await by.exchange([change])[0]!);
    await eventually(() => seen.length >= i, { every: 1 });
    expect(Number(await seen[i - 1])).toBeGreaterThanOrEqual(i);
  }
});
