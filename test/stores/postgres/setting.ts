import type { StoreError } from 'nestjs-distributed-lock/core';
import pg from 'pg';
import { openTable } from '../../../lib/stores/postgres/postgres.open.js';
import { postgresSchema, type PostgresStoreOptions } from '../../../lib/stores/postgres/postgres.store.js';
import type { PostgresTable } from '../../../lib/stores/postgres/postgres.table.js';
import type { Change, Found, RecordTable } from '../../../lib/stores/records/record.table.js';
import { wholeChange } from '../../support/change.js';
import { eventually } from '../../support/eventually.js';
import { postgresUrl, startPostgres, type PostgresConnection, type PostgresServer } from '../../support/postgres-server.js';
import { rejection } from '../../support/rejection.js';
import { sharedPostgres } from '../../support/shared-server.js';
import { startProxy, type TcpProxy } from '../../support/tcp-proxy.js';
import { POSTGRES } from '../../support/tcp-proxy-framing.js';

export const HOUR = 3_600_000;

/** A database of this file, with the table. Call it at the top of the file. @param start of a server of one's own, which is then started. */
export function usePostgres(start: () => Promise<{ url: string; connection: PostgresConnection }> = sharedPostgres) {
  let database: { url: string; connection: PostgresConnection };
  let admin: pg.Pool;
  const closing: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    database = await start();
    admin = new pg.Pool({ ...database.connection, max: 2 });
    admin.on('error', () => undefined);
    await admin.query(postgresSchema());
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });
  afterAll(() => admin.end());
  return {
    get url() {
      return database.url;
    },
    get connection() {
      return database.connection;
    },
    /** Of nobody else: for looks behind the scenes. */
    sql: async (text: string, values?: unknown[]) => (await admin.query(text, values)).rows as Record<string, unknown>[],
    /** Closed with the test. */
    open(options: Partial<PostgresStoreOptions> = {}) {
      const table = openTable({
        ...('pool' in options || 'query' in options ? {} : { url: database.url }),
        ...options,
      } as PostgresStoreOptions);
      closing.push(() => table.close());
      return table;
    },
    /** Called when the test has ended, the last one first. */
    closes: (close: () => Promise<unknown>) => void closing.push(close),
    /** Ended with the test. */
    pool(options?: pg.PoolConfig) {
      const pool = new pg.Pool({ ...database.connection, ...options });
      pool.on('error', () => undefined);
      closing.push(() => pool.end());
      return pool;
    },
  };
}

let keys = 0;
export const newKey = (): string => `key:${process.pid}:${++keys}`;

export const changeOf = (change: Partial<Change>): Change => wholeChange({ key: newKey(), endsAt: 8_000_000_000_000, ...change });

export function exchange(table: RecordTable, change: Partial<Change>): Promise<Found> {
  return table.exchange([changeOf(change)])[0]!;
}

/** A table that listens, and what it has heard. */
export async function hearing(setting: ReturnType<typeof usePostgres>, options: Partial<PostgresStoreOptions> = {}) {
  const table = setting.open(options);
  const wakeUps = table.wakeUps!;
  const warnings: string[] = [];
  const heard: string[] = [];
  await wakeUps.open((message) => warnings.push(message));
  wakeUps.listen('owner', () => heard.push('owner'));
  return { table, wakeUps, warnings, heard, inbox: wakeUps.inbox };
}

export async function wakes(by: PostgresTable, { inbox, heard }: Awaited<ReturnType<typeof hearing>>): Promise<void> {
  const before = heard.length;
  await exchange(by, { messages: [{ inbox, text: 'owner' }], isLazy: true });
  await eventually(() => heard.length > before);
}

export const refusalOf = (work: Promise<unknown>): Promise<StoreError> => rejection(work) as Promise<StoreError>;

/** A server that the tests of a file may break, and a proxy before it, which heals after each test. */
export function useOwnPostgres() {
  let server: PostgresServer;
  let proxy: TcpProxy;
  const setting = usePostgres(async () => (server = await startPostgres({ port: 'free' })));
  beforeAll(async () => {
    proxy = await startProxy({ port: server.port! }, undefined, POSTGRES);
  });
  afterEach(() => proxy.heal());
  afterAll(async () => {
    await proxy.close();
    await server.stop();
  });
  return {
    setting,
    listening: (options?: Partial<PostgresStoreOptions>) => hearing(setting, options),
    get server() {
      return server;
    },
    get proxy() {
      return proxy;
    },
    /** Through the proxy. */
    get url() {
      return postgresUrl({ ...server.connection, port: proxy.port });
    },
  };
}
