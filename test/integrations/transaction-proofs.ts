import type { DataSource } from 'typeorm';
import type { Booted } from '../nest/boot.js';
import type { Order } from './place.js';
import { applesIn, logLocks, openDatabase } from './transactions.js';

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

  it('runs the body once, under one lock and in one transaction', async () => {
    const { keys, booted, database } = app;
    expect(await app.take(2)).toBe(2);
    expect([keys, booted.acquired, await applesIn(database)]).toEqual([['stock-locks', true], ['stock-locks'], 18]);
  });

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
      await app.take(1);
      expect(log).toEqual(['BEGIN', 'acquired', 'released', 'COMMIT']);
    });
  }
}
