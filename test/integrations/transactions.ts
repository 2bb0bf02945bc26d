import { DataSource } from 'typeorm';
import type { Booted } from '../nest/boot.js';

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
