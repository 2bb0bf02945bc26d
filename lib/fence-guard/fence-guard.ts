import { currentLease } from '../core/holding/call-chain.js';
import { checkOptions, oneOf, type Checks } from '../core/model/check-options.js';
import { configError } from '../core/model/errors.js';
import { fenceTable, type FenceDialect } from './dialects.js';
import { fencedOff, isMissingTable, isRaceOfCreate } from './errors.js';
import { fencedKeysOf, type FenceableLease } from './fenced-keys.js';
import { stackOf, watchTransaction } from './open-transactions.js';
import type { Run } from './run.js';

export { FencedError } from './errors.js';
export type { FenceDialect } from './dialects.js';
export type { FenceableLease } from './fenced-keys.js';
export type { Run } from './run.js';
export { mysql2, pg } from './clients.js';
export { drizzle, knex, kysely, mikroOrm, prisma, sequelize, typeorm } from './orms.js';
export { Fenced } from './fenced.decorator.js';

/** Options of {@link fenceGuard}. */
export interface FenceGuardOptions {
  /** The kind of the database that has the guarded data. `'mysql'` is MariaDB as well. */
  dialect: FenceDialect;
  /** Its table, with its schema if that is not the default one: letters, digits, `_`, and one dot. Default `'lock_fence'`. */
  table?: string;
  /**
   * The reaction to a lock that is released while a transaction that it guards is open: a warning once a minute per label, or a `LockConfigError`
   * from the release as well, so that a test fails. Default `'warn'`.
   */
  onOpenTransaction?: 'warn' | 'throw';
}

/** Options of {@link FenceGuard.check}. */
export interface FenceCheckOptions {
  /** Default: `currentLease()`. */
  lease?: FenceableLease;
  /** The name of the guarded thing in the table. Default: the key of the lease, namespace included. */
  key?: string;
  /** For a read lease: the transaction only reads. It waits for writers, not for other readers. Default false. */
  shared?: boolean;
}

/** An object or a function that begins a transaction, and ends it when the work has ended. */
export type Transactional<Tx, Result> =
  { transaction(work: (tx: Tx) => Promise<Result>): PromiseLike<Result> } | ((work: (tx: Tx) => Promise<Result>) => PromiseLike<Result>);

/** Lets a transaction go on only while its lock has no later holder. */
export interface FenceGuard {
  /**
   * Locks the row of the key until the transaction ends, and refuses a lease that is older than one that was here before. It must be the first
   * statement of the transaction: what was read before may be out of date.
   *
   * @param run of the transaction: `pg(client)`, `typeorm(manager)`, …
   * @throws {LockLostError} if a later holder was here. Its `cause` is a {@link FencedError}. Let it roll the transaction back.
   * @throws {LockConfigError} if there is no lease, no transaction or no table, or if the lease is one of several permits.
   * @throws {UnsupportedPrimitiveError} if the store of the lease gives no fencing token.
   * @throws what the database answers, unchanged: a serialization failure, a lock timeout.
   */
  check(run: Run, options?: FenceCheckOptions): Promise<void>;
  /**
   * Runs the work in a transaction, with the check as its first statement. It knows the end of the transaction with every client.
   *
   * @param database whose method `transaction` calls its argument in one (TypeORM, Knex, Drizzle), or a function that does:
   *   `(work) => db.transaction().execute(work)`.
   * @param runOf makes the {@link Run} of it: `(tx) => drizzle(tx, sql)`.
   * @throws as {@link check}, and what the database and `work` throw.
   */
  transaction<Tx, Result>(
    database: Transactional<Tx, Result>,
    runOf: (tx: Tx) => Run,
    work: (tx: Tx) => Promise<Result>,
    options?: FenceCheckOptions,
  ): Promise<Result>;
  /** The statement that makes the table. */
  ddl(): string;
  /** Makes the table if it is not there. */
  migrate(run: Run): Promise<void>;
  /**
   * Deletes the rows that were not used for so long. Choose a time after which no process can still have an old lease.
   *
   * @param options `olderThan`: such as `'30 days'` or `'36 hours'`, at least a day.
   */
  prune(run: Run, options: { olderThan: string }): Promise<void>;
}

const TABLE = /^(?=.{1,63}$)\w+(\.\w+)?$/;
const GUARD_CHECKS: Checks = {
  dialect: oneOf('postgres', 'mysql', 'sqlite'),
  table: (value) => (typeof value === 'string' && TABLE.test(value) ? undefined : 'a name of letters, digits and "_"'),
  onOpenTransaction: oneOf('warn', 'throw'),
};

/**
 * A guard for transactions of an SQL database, which refuses a holder that was paused and has lost its lock. The locks may be in any store.
 *
 * @throws {LockConfigError} if an option is wrong.
 */
export function fenceGuard(options: FenceGuardOptions): FenceGuard {
  checkOptions(options, 'fenceGuard', GUARD_CHECKS, 'dialect');
  const { dialect, table: name = 'lock_fence', onOpenTransaction = 'warn' } = options;
  const table = fenceTable(dialect, name);
  const isFault = onOpenTransaction === 'throw';

  async function check(
    run: Run,
    { lease = currentLease(), key, shared }: FenceCheckOptions,
    calledAt: Error,
    isOpen = run.isOpen?.bind(run),
  ) {
    if (!lease) throw configError('FENCE', 'The fence guard found no lease: check inside of a locked call, or pass { lease }.');
    lease.assertHeld();
    for (const fenced of fencedKeysOf(lease, key, shared === true)) {
      const outcome = await inTable(name, table[shared ? 'share' : 'fence'](run, fenced.key, String(fenced.token)));
      if (outcome === 'ours') continue;
      const message = `The lease of "${fenced.key}" was lost: a later holder has worked in this database.`;
      throw fencedOff(message, fenced.key, fenced.token, outcome.seen);
    }
    if (isOpen) watchTransaction(lease, { isOpen, calledAt, isFault });
  }

  const guard: FenceGuard = {
    check: async (run, checkOptions = {}) => check(run, checkOptions, stackOf(guard, 'check')),

    async transaction(database, runOf, work, checkOptions = {}) {
      const calledAt = stackOf(guard, 'transaction');
      let isOpen = true;
      // Knex is a function that has this method.
      const begin = 'transaction' in database ? database.transaction.bind(database) : database;
      try {
        return await begin(async (tx) => {
          await check(runOf(tx), checkOptions, calledAt, () => isOpen);
          return work(tx);
        });
      } finally {
        isOpen = false;
      }
    },

    ddl: () => table.ddl,

    async migrate(run) {
      await run(table.ddl, []).catch((error: unknown) => {
        // Two that make it at the same time: Postgres lets one of them fail.
        if (!isRaceOfCreate(error)) throw error;
      });
    },

    prune: async (run, { olderThan }) => inTable(name, table.prune(run, String(secondsIn(olderThan)))),
  };
  return guard;
}

async function inTable<T>(name: string, asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (!isMissingTable(error)) throw error;
    const message = `The fence guard has no table "${name}": make it in a migration (fence.ddl()), or call fence.migrate(run) at startup.`;
    throw configError('FENCE', message, { cause: error });
  }
}

const SECONDS: Record<string, number> = { hour: 3600, day: 86_400, week: 604_800 };
const LEAST = 86_400;

/** `'30 days'`, `'36 hours'`, `'2 weeks'`, in seconds. */
function secondsIn(period: string): number {
  const [, count, unit] = /^(\d{1,6}) (hour|day|week)s?$/.exec(period) ?? [];
  const seconds = Number(count) * (SECONDS[unit ?? ''] ?? NaN);
  if (seconds >= LEAST) return seconds;
  const expected = 'a number of hours, days or weeks of at least a day, such as "30 days"';
  throw configError('OPTION', `FenceGuard.prune: "olderThan" must be ${expected}, not "${period}".`);
}
