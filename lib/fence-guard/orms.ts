import { asTemplate, refused, queriesBy, withQuestionMarks, type Run } from './run.js';

/** A savepoint that is rolled back takes the check with it, and the transaction goes on unguarded. */
function outermost(helper: string, isNested: boolean): void {
  if (isNested) throw refused(helper, 'a savepoint in place of the outermost transaction');
}

/** A `QueryRunner` of TypeORM. */
export interface TypeOrmQueryRunner {
  readonly isTransactionActive: boolean;
  readonly isReleased?: boolean;
  query(sql: string, params?: unknown[]): Promise<unknown>;
}

/** For TypeORM: the `EntityManager` that `dataSource.transaction` passes, or a query runner. @throws {LockConfigError} outside of a transaction, and in one that is nested. */
export function typeorm(client: { readonly queryRunner?: TypeOrmQueryRunner | undefined } | TypeOrmQueryRunner): Run {
  const runner = 'isTransactionActive' in client ? client : client.queryRunner;
  if (runner?.isTransactionActive !== true) throw refused('typeorm', 'a manager without an active transaction');
  outermost('typeorm', Number((runner as { transactionDepth?: number }).transactionDepth) > 1);
  return queriesBy(
    (sql, params) => runner.query(sql, params),
    () => runner.isTransactionActive && runner.isReleased !== true,
  );
}

/** A `Knex.Transaction`. */
export interface KnexTransaction {
  readonly isTransaction?: boolean;
  isCompleted?(): boolean;
  readonly parentTransaction?: unknown;
  raw(sql: string, params: readonly string[]): PromiseLike<unknown>;
}

/** For Knex. @throws {LockConfigError} outside of a transaction, and in one that is nested. */
export function knex(trx: KnexTransaction): Run {
  const isOpen = () => trx.isCompleted?.() === false;
  if (trx.isTransaction !== true || !isOpen()) throw refused('knex', 'a client without an open transaction');
  outermost('knex', trx.parentTransaction !== undefined);
  return queriesBy((sql, params) => trx.raw(withQuestionMarks(sql), params), isOpen);
}

/** The tag `sql` of a query builder: Drizzle's or Kysely's. */
export type SqlTag<Query> = (strings: TemplateStringsArray, ...params: unknown[]) => Query;

/** For Drizzle on Postgres or MySQL: the argument of `db.transaction(…)`, and Drizzle's `sql`. @throws {LockConfigError} outside of a transaction, and in one that is nested. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- its type belongs to Drizzle
export function drizzle(tx: { execute(query: any): PromiseLike<unknown> }, sql: SqlTag<unknown>): Run {
  if (typeof (tx as { rollback?: unknown }).rollback !== 'function') throw refused('drizzle', 'a database in place of its transaction');
  outermost('drizzle', Number((tx as { nestedIndex?: number }).nestedIndex) > 0);
  return queriesBy((text, params) => tx.execute(sql(asTemplate(text), ...params)));
}

/** For Kysely: the transaction, and Kysely's `sql`. @throws {LockConfigError} outside of a transaction. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- its type belongs to Kysely
export function kysely(trx: { readonly isTransaction: boolean }, sql: SqlTag<{ execute(trx: any): Promise<unknown> }>): Run {
  if (trx.isTransaction !== true) throw refused('kysely', 'a database in place of its transaction');
  return queriesBy((text, params) => sql(asTemplate(text), ...params).execute(trx));
}

type PrismaScope = { scopeId: string; scopeState: { stack: string[] } };
/** For Prisma on Postgres: the argument of `prisma.$transaction(async (tx) => …)`. @throws {LockConfigError} for the client itself, which has no transaction, and in one that is nested. */
export function prisma(tx: { $queryRawUnsafe(sql: string, ...params: unknown[]): PromiseLike<unknown> }): Run {
  // Not `$transaction`: those of Prisma 7 have it, to be nested. Each knows which are open, the outermost first.
  if ('$connect' in tx) throw refused('prisma', 'the client in place of its transaction');
  const scope = Reflect.get(tx, Symbol.for('prisma.client.transaction.scope_context')) as PrismaScope | undefined;
  outermost('prisma', scope?.scopeState.stack[0] !== scope?.scopeId);
  return queriesBy((sql, params) => tx.$queryRawUnsafe(sql, ...params));
}

/** For MikroORM: the argument of `em.transactional(async (em) => …)`. @throws {LockConfigError} outside of a transaction. */
export function mikroOrm(em: { isInTransaction(): boolean; execute(sql: string, params?: unknown[]): Promise<unknown> }): Run {
  if (!em.isInTransaction()) throw refused('mikroOrm', 'an entity manager without a transaction');
  return queriesBy((sql, params) => em.execute(withQuestionMarks(sql), params));
}

/** A `Sequelize`. */
export interface SequelizeClient {
  query(sql: string, options: { replacements: unknown[]; transaction: never; raw: true }): Promise<unknown>;
}

/** For Sequelize: the client, and the transaction. @throws {LockConfigError} outside of a transaction. */
export function sequelize(client: SequelizeClient, transaction: { readonly finished?: string | undefined }): Run {
  const isOpen = () => transaction.finished === undefined;
  if (typeof transaction !== 'object' || transaction === null || !isOpen()) throw refused('sequelize', 'no open transaction');
  const send = (sql: string, replacements: string[]) =>
    client.query(withQuestionMarks(sql), { replacements, transaction: transaction as never, raw: true });
  return queriesBy(send, isOpen);
}
