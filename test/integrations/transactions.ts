import { DataSource } from 'typeorm';
import type { Booted } from '../nest/boot.js';
import type { Order } from './place.js';

/** A database of its own in memory, with some apples; what it begins and ends is told to `log`. */
export async function openDatabase(log: string[]): Promise<DataSource> {
  const note = (query: string) => void (/^(BEGIN|COMMIT|ROLLBACK)/.test(query) && log.push(query.replace(' TRANSACTION', '')));
  const silent = () => undefined;
  const logger = { logQuery: note, logQueryError: silent, logQuerySlow: silent, logSchemaBuild: silent, logMigration: silent, log: silent };
  const database = await new DataSource({ type: 'sqljs', logger }).initialize();
  await database.query('CREATE TABLE stock (sku TEXT, units INTEGER)');
  await database.query("INSERT INTO stock VALUES ('apple', 20)");
  return database;
}

/** Reads, and writes back later: two at a time would lose an update. A negative number of units fails, after its write. */
export async function take(client: Pick<DataSource, 'query'>, units: number): Promise<void> {
  const before = await applesIn(client);
  await new Promise(setImmediate);
  await client.query("UPDATE stock SET units = ? WHERE sku = 'apple'", [before - units]);
  if (units < 0) throw new Error('Nothing can be given back.');
}

export async function applesIn(client: Pick<DataSource, 'query'>): Promise<number> {
  const [row] = await client.query<{ units: number }[]>("SELECT units FROM stock WHERE sku = 'apple'");
  return row?.units ?? Number.NaN;
}

/** Puts the lock's doings beside those of the database. */
export function logLocks({ locks }: Booted, log: string[]): void {
  locks.on('acquired', () => log.push('acquired'));
  locks.on('released', () => log.push('released'));
}

/** An app whose method `take` is locked as `stock-locks`, runs in a transaction, and notes in `keys` its lease's key and whether there is a transaction. */
export interface TransactionalApp {
  readonly booted: Booted;
  readonly database: DataSource;
  readonly keys: unknown[];
  take(units: number): Promise<number>;
  end(): Promise<void>;
}

/** What a lock and a transaction promise together, whoever makes the transaction. */
export function provesTransactions(order: Order, open: (database: DataSource) => Promise<TransactionalApp>): void {
  let log: string[];
  let app: TransactionalApp;
  beforeEach(async () => {
    app = await open(await openDatabase((log = [])));
    logLocks(app.booted, log);
  });
  afterEach(() => app.end());

  it('is rolled back when the body fails, whose error comes through, and the lock is free', async () => {
    const { keys, booted, database } = app;
    await expect(app.take(-1)).rejects.toThrow('Nothing can be given back.');
    expect([keys, booted.acquired, await booted.isTaken('stock-locks')]).toEqual([['stock-locks', true], ['stock-locks'], false]);
    expect(await applesIn(database)).toBe(20);
    expect(log).toContain('ROLLBACK');
  });

  if (order === 'above') {
    it('is released after the commit, so that the next caller reads what was committed', async () => {
      await Promise.all(Array.from({ length: 6 }, () => app.take(1)));
      expect(await applesIn(app.database)).toBe(14);
      expect(log).toEqual(Array(6).fill(['acquired', 'BEGIN', 'COMMIT', 'released']).flat());
    });
  } else {
    it('is released before the commit: the next caller may read what was there before', async () => {
      expect(await app.take(1)).toBe(1);
      expect(log).toEqual(['BEGIN', 'acquired', 'released', 'COMMIT']);
      expect([app.keys, await applesIn(app.database)]).toEqual([['stock-locks', true], 19]);
    });
  }
}
