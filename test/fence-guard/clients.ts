import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { sql as drizzleSql } from 'drizzle-orm';
import { drizzle as drizzleOnMysql } from 'drizzle-orm/mysql2';
import { drizzle as drizzleOnPg } from 'drizzle-orm/node-postgres';
import knexClient from 'knex';
import { Kysely, MysqlDialect, PostgresDialect, sql as kyselySql } from 'kysely';
import callbackMysql from 'mysql2';
import promiseMysql from 'mysql2/promise';
import pgDriver from 'pg';
import { PrismaPg as PrismaPg6 } from 'prisma-adapter-pg-6';
import { PrismaPg as PrismaPg7 } from 'prisma-adapter-pg-7';
import { DataSource } from 'typeorm';
import { drizzle, knex, kysely, mysql2, pg, prisma, typeorm, type FenceDialect, type Run } from 'nestjs-distributed-lock/fence-guard';
import { sharedMariadb, sharedPostgres } from '../support/shared-server.js';
import { byStatements, inTransactionOf } from './in-transaction.js';

/** A client library as users have it, for the same tests. */
export interface Client<Tx = unknown> {
  /** Runs the work in a transaction, which is rolled back if it fails. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** The helper for its transaction. */
  runOf(tx: Tx): Run;
  /** The helper for what is no transaction: throws, or makes a run that does. */
  outside(): Run;
  /** Runs the work in a transaction inside of one, which is a savepoint. */
  nested?(tx: Tx, work: (tx: Tx) => Promise<void>): Promise<void>;
  close(): Promise<unknown>;
}

export interface ClientCase {
  name: string;
  dialect: FenceDialect;
  /** Whether its helper knows the end of a transaction by itself. */
  knowsTheEnd: boolean;
  /** Whether it makes a savepoint of a transaction inside of one. */
  nests?: boolean;
  open(): Promise<Client>;
}

function client<Tx>(of: Client<Tx>): Client {
  return of;
}

const pgPool = async () => new pgDriver.Pool((await sharedPostgres()).connection);
const mysqlPool = async () => promiseMysql.createPool((await sharedMariadb()).connection);
const callbackPool = async () => callbackMysql.createPool((await sharedMariadb()).connection);

async function openPg() {
  const pool = await pgPool();
  return client<pgDriver.PoolClient>({ transaction: inTransactionOf(pool), runOf: pg, outside: () => pg(pool), close: () => pool.end() });
}

async function openMysql2() {
  const pool = await mysqlPool();
  return client<promiseMysql.PoolConnection>({
    transaction: byStatements(
      () => pool.getConnection(),
      (tx, statement) => tx.query(statement),
    ),
    runOf: mysql2,
    outside: () => mysql2(pool),
    close: () => pool.end(),
  });
}

/** The same driver with callbacks. */
async function openMysql2Callbacks() {
  const pool = await callbackPool();
  return client<callbackMysql.PoolConnection>({
    transaction: byStatements(
      () => promisify(pool.getConnection.bind(pool))(),
      (tx, statement) => new Promise<void>((resolve, reject) => tx.query(statement, (error) => (error ? reject(error) : resolve()))),
    ),
    runOf: (tx) => mysql2(tx),
    outside: () => mysql2(pool),
    close: () => new Promise((resolve) => pool.end(resolve)),
  });
}

async function openTypeOrm(type: 'postgres' | 'mysql' | 'sqljs') {
  const url = type === 'postgres' ? (await sharedPostgres()).connection : type === 'mysql' ? (await sharedMariadb()).connection : undefined;
  const options = { postgres: { ...url, username: url?.user }, mysql: { ...url, username: url?.user }, sqljs: {} }[type];
  const source = await new DataSource({ type, ...options }).initialize();
  return client<DataSource['manager']>({
    transaction: (work) => source.transaction(work),
    nested: (tx, work) => tx.transaction(work),
    runOf: typeorm,
    outside: () => typeorm(source.manager),
    close: () => source.destroy(),
  });
}

async function openKnex(dialect: 'pg' | 'mysql2') {
  const { connection } = dialect === 'pg' ? await sharedPostgres() : await sharedMariadb();
  const db = knexClient({ client: dialect, connection });
  return client<knexClient.Knex.Transaction>({
    transaction: (work) => db.transaction(work),
    nested: (tx, work) => tx.transaction(work),
    runOf: knex,
    outside: () => knex(db as never),
    close: () => db.destroy(),
  });
}

async function openDrizzle(dialect: 'postgres' | 'mysql') {
  const pool = await (dialect === 'postgres' ? pgPool() : mysqlPool());
  const db = pool instanceof pgDriver.Pool ? drizzleOnPg(pool) : drizzleOnMysql({ client: pool });
  return client<Parameters<typeof drizzle>[0]>({
    transaction: (work) => db.transaction(work),
    nested: (tx, work) => (tx as typeof db).transaction(work),
    runOf: (tx) => drizzle(tx, drizzleSql),
    outside: () => drizzle(db, drizzleSql),
    close: () => pool.end(),
  });
}

async function openKysely(dialect: 'postgres' | 'mysql') {
  const db = new Kysely<object>({
    dialect: dialect === 'postgres' ? new PostgresDialect({ pool: await pgPool() }) : new MysqlDialect({ pool: await callbackPool() }),
  });
  type Tx = Parameters<Parameters<ReturnType<typeof db.transaction>['execute']>[0]>[0];
  return client<Tx>({
    transaction: (work) => db.transaction().execute(work),
    runOf: (tx) => kysely(tx, kyselySql),
    outside: () => kysely(db, kyselySql),
    close: () => db.destroy(),
  });
}

interface PrismaClient {
  $transaction<T>(work: (tx: PrismaClient) => Promise<T>): Promise<T>;
  $queryRawUnsafe(sql: string, ...params: unknown[]): Promise<unknown>;
  $disconnect(): Promise<void>;
}

/** As `prisma generate` writes it for a schema without models, which is nothing but this configuration. Prisma's command line would load an engine first. */
function prismaOn(version: 6 | 7, adapter: object): PrismaClient {
  const load = createRequire(__filename);
  const runtime = `prisma-client-${version}/runtime`;
  const compiler = version === 6 ? 'query_compiler_bg' : 'query_compiler_fast_bg';
  const { getPrismaClient } = load(`${runtime}/client.js`) as { getPrismaClient(config: object): new (options: object) => PrismaClient };
  const Prisma = getPrismaClient({
    runtimeDataModel: { models: {}, enums: {}, types: {} },
    ...{ previewFeatures: [], clientVersion: String(version), engineVersion: '', activeProvider: 'postgresql' },
    inlineSchema: `datasource db {\n  provider = "postgresql"\n${version === 6 ? '  url = "postgresql://unused"\n' : ''}}\n`,
    compilerWasm: {
      getRuntime: async () => load(`${runtime}/${compiler}.postgresql.js`) as unknown,
      getQueryCompilerWasmModule: async () => {
        const { wasm } = load(`${runtime}/${compiler}.postgresql.wasm-base64.js`) as { wasm: string };
        const { WebAssembly } = globalThis as unknown as { WebAssembly: { Module: new (bytes: Buffer) => object } };
        return new WebAssembly.Module(Buffer.from(wasm, 'base64'));
      },
      importName: `./${compiler}.js`,
    },
    generator: { config: { engineType: 'client' }, previewFeatures: [] },
    ...{ relativePath: '.', dirname: __dirname, copyEngine: true, datasourceNames: ['db'], inlineSchemaHash: '' },
    inlineDatasources: { db: { url: { fromEnvVar: null, value: 'postgresql://unused' } } },
    parameterizationSchema: { strings: [], graph: 'AAAA' },
  });
  return new Prisma({ adapter });
}

async function openPrisma(version: 6 | 7) {
  const { connection } = await sharedPostgres();
  const db = prismaOn(version, version === 6 ? new PrismaPg6(connection) : new PrismaPg7(connection));
  return client<PrismaClient>({
    transaction: (work) => db.$transaction(work),
    nested: (tx, work) => tx.$transaction(work),
    runOf: prisma,
    outside: () => prisma(db),
    close: () => db.$disconnect(),
  });
}

export const clients: ClientCase[] = [
  { name: 'pg', dialect: 'postgres', knowsTheEnd: true, open: openPg },
  { name: 'TypeORM on Postgres', dialect: 'postgres', knowsTheEnd: true, nests: true, open: () => openTypeOrm('postgres') },
  { name: 'Knex on Postgres', dialect: 'postgres', knowsTheEnd: true, nests: true, open: () => openKnex('pg') },
  { name: 'Drizzle on Postgres', dialect: 'postgres', knowsTheEnd: false, nests: true, open: () => openDrizzle('postgres') },
  { name: 'Kysely on Postgres', dialect: 'postgres', knowsTheEnd: false, open: () => openKysely('postgres') },
  { name: 'Prisma 6', dialect: 'postgres', knowsTheEnd: false, open: () => openPrisma(6) },
  { name: 'Prisma 7', dialect: 'postgres', knowsTheEnd: false, nests: true, open: () => openPrisma(7) },
  { name: 'mysql2', dialect: 'mysql', knowsTheEnd: false, open: openMysql2 },
  { name: 'mysql2 with callbacks', dialect: 'mysql', knowsTheEnd: false, open: openMysql2Callbacks },
  { name: 'TypeORM on MariaDB', dialect: 'mysql', knowsTheEnd: true, nests: true, open: () => openTypeOrm('mysql') },
  { name: 'Knex on MariaDB', dialect: 'mysql', knowsTheEnd: true, nests: true, open: () => openKnex('mysql2') },
  { name: 'Drizzle on MariaDB', dialect: 'mysql', knowsTheEnd: false, nests: true, open: () => openDrizzle('mysql') },
  { name: 'Kysely on MariaDB', dialect: 'mysql', knowsTheEnd: false, open: () => openKysely('mysql') },
  { name: 'TypeORM on SQLite', dialect: 'sqlite', knowsTheEnd: true, nests: true, open: () => openTypeOrm('sqljs') },
];
