import { refused } from './clients.js';
import { asTemplate, partsOf, rowsOf, type Run } from './run.js';

/** A `QueryRunner` of TypeORM. */
export interface TypeOrmQueryRunner {
  readonly isTransactionActive: boolean;
  readonly isReleased?: boolean;
  query(sql: string, params?: unknown[]): Promise<unknown>;
}

/** The `EntityManager` that `dataSource.transaction` passes, or that of a query runner. */
export interface TypeOrmManager {
  readonly queryRunner?: TypeOrmQueryRunner | undefined;
  query(sql: string, params?: unknown[]): Promise<unknown>;
}

/** A savepoint that is rolled back takes the check with it, and the transaction goes on unguarded. */
function outermost(helper: string, isNested: boolean): void {
  if (isNested) throw refused(helper, 'a savepoint in place of the outermost transaction');
}

/**
 * For TypeORM.
 *
 * @throws {LockConfigError} outside of a transaction, and in one that is nested.
 */
export function typeorm(client: TypeOrmManager | TypeOrmQueryRunner): Run {
  const runner = 'isTransactionActive' in client ? client : client.queryRunner;
  if (runner?.isTransactionActive !== true) throw refused('typeorm', 'a manager without an active transaction');
  outermost('typeorm', Number((runner as { transactionDepth?: number }).transactionDepth) > 1);
  const isOpen = () => runner.isTransactionActive && runner.isReleased !== true;
  return Object.assign(async (sql: string, params: readonly string[]) => rowsOf(await runner.query(sql, [...params])), { isOpen });
}

/** A `Knex.Transaction`. */
export interface KnexTransaction {
  readonly isTransaction?: boolean;
  isCompleted?(): boolean;
  readonly parentTransaction?: unknown;
  raw(sql: string, params: readonly string[]): PromiseLike<unknown>;
}

/**
 * For Knex.
 *
 * @throws {LockConfigError} outside of a transaction, and in one that is nested.
 */
export function knex(trx: KnexTransaction): Run {
  const isOpen = () => trx.isCompleted?.() === false;
  if (trx.isTransaction !== true || !isOpen()) throw refused('knex', 'a client without an open transaction');
  outermost('knex', trx.parentTransaction !== undefined);
  return Object.assign(async (sql: string, params: readonly string[]) => rowsOf(await trx.raw(partsOf(sql).join('?'), params)), { isOpen });
}

/** The argument of `db.transaction(…)` of Drizzle, for Postgres or MySQL. */
export interface DrizzleTransaction {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- its type belongs to Drizzle
  execute(query: any): PromiseLike<unknown>;
}

/** The tag `sql` of a query builder: Drizzle's or Kysely's. */
export type SqlTag<Query> = (strings: TemplateStringsArray, ...params: unknown[]) => Query;

/**
 * For Drizzle on Postgres or MySQL: the transaction, and Drizzle's `sql`.
 *
 * @throws {LockConfigError} outside of a transaction, and in one that is nested.
 */
export function drizzle(tx: DrizzleTransaction, sql: SqlTag<unknown>): Run {
  if (typeof (tx as { rollback?: unknown }).rollback !== 'function') throw refused('drizzle', 'a database in place of its transaction');
  outermost('drizzle', Number((tx as { nestedIndex?: number }).nestedIndex) > 0);
  return async (text, params) => rowsOf(await tx.execute(sql(asTemplate(text), ...params)));
}

/** A `Transaction` of Kysely. */
export interface KyselyTransaction {
  readonly isTransaction: boolean;
}

/**
 * For Kysely: the transaction, and Kysely's `sql`.
 *
 * @throws {LockConfigError} outside of a transaction.
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- its type belongs to Kysely
export function kysely(trx: KyselyTransaction, sql: SqlTag<{ execute(trx: any): Promise<unknown> }>): Run {
  if (trx.isTransaction !== true) throw refused('kysely', 'a database in place of its transaction');
  return async (text, params) => rowsOf(await sql(asTemplate(text), ...params).execute(trx));
}

/** The argument of an interactive transaction of Prisma. */
export interface PrismaTransaction {
  $queryRawUnsafe(sql: string, ...params: unknown[]): PromiseLike<unknown>;
}

/**
 * For Prisma on Postgres: the argument of `prisma.$transaction(async (tx) => …)`.
 *
 * @throws {LockConfigError} for the client itself, which has no transaction.
 */
export function prisma(tx: PrismaTransaction): Run {
  if ('$transaction' in tx) throw refused('prisma', 'the client in place of its transaction');
  return async (sql, params) => rowsOf(await tx.$queryRawUnsafe(sql, ...params));
}

/** An `SqlEntityManager` of MikroORM. */
export interface MikroOrmEntityManager {
  isInTransaction(): boolean;
  execute(sql: string, params?: unknown[]): Promise<unknown>;
}

/**
 * For MikroORM: the argument of `em.transactional(async (em) => …)`.
 *
 * @throws {LockConfigError} outside of a transaction.
 */
export function mikroOrm(em: MikroOrmEntityManager): Run {
  if (!em.isInTransaction()) throw refused('mikroOrm', 'an entity manager without a transaction');
  return async (sql, params) => rowsOf(await em.execute(partsOf(sql).join('?'), [...params]));
}

/** A `Sequelize`. */
export interface SequelizeClient {
  query(sql: string, options: { replacements: unknown[]; transaction: never; raw: true }): Promise<unknown>;
}

/** A `Transaction` of Sequelize. */
export interface SequelizeTransaction {
  readonly finished?: string | undefined;
}

/**
 * For Sequelize: the client, and the transaction.
 *
 * @throws {LockConfigError} outside of a transaction.
 */
export function sequelize(client: SequelizeClient, transaction: SequelizeTransaction): Run {
  const isOpen = () => transaction.finished === undefined;
  if (typeof transaction !== 'object' || transaction === null || !isOpen()) throw refused('sequelize', 'no open transaction');
  const options = { transaction: transaction as never, raw: true } as const;
  const run = async (sql: string, params: readonly string[]) =>
    rowsOf(await client.query(partsOf(sql).join('?'), { replacements: [...params], ...options }));
  return Object.assign(run, { isOpen });
}
