import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { Pool } from 'pg';
import { config } from '../config.js';
import { StockStore } from './stock.store.js';

const TABLES = `
  CREATE TABLE IF NOT EXISTS stock (sku text PRIMARY KEY, units int NOT NULL);
  CREATE TABLE IF NOT EXISTS marks (name text PRIMARY KEY, ends_at timestamptz NOT NULL);
  CREATE TABLE IF NOT EXISTS stocktakes (tick bigint PRIMARY KEY, runs int NOT NULL)`;

/** The stock that all instances of the shop share, in the database that has the locks, too. */
@Injectable()
export class PostgresStockStore extends StockStore implements OnModuleInit, OnApplicationShutdown {
  private readonly pool = new Pool({ connectionString: config.databaseUrl, max: 20 });

  async onModuleInit(): Promise<void> {
    // Two instances that create a table at the same time would fail.
    const client = await this.pool.connect();
    try {
      await client.query(`BEGIN; SELECT pg_advisory_xact_lock(1); ${TABLES}; COMMIT`);
    } finally {
      client.release();
    }
  }

  async read(sku: string): Promise<number | null> {
    const { rows } = await this.pool.query<{ units: number }>('SELECT units FROM stock WHERE sku = $1', [sku]);
    return rows[0]?.units ?? null;
  }

  async write(sku: string, units: number): Promise<void> {
    await this.pool.query('INSERT INTO stock VALUES ($1, $2) ON CONFLICT (sku) DO UPDATE SET units = $2', [sku, units]);
  }

  async mark(name: string, expiry: number): Promise<boolean> {
    const sql = `INSERT INTO marks AS m VALUES ($1, clock_timestamp() + $2 * interval '1 ms')
      ON CONFLICT (name) DO UPDATE SET ends_at = excluded.ends_at WHERE m.ends_at <= clock_timestamp()`;
    return (await this.pool.query(sql, [name, expiry])).rowCount === 1;
  }

  async unmark(name: string): Promise<void> {
    await this.pool.query('DELETE FROM marks WHERE name = $1', [name]);
  }

  async countStocktake(tick: number): Promise<void> {
    await this.pool.query('INSERT INTO stocktakes AS s VALUES ($1, 1) ON CONFLICT (tick) DO UPDATE SET runs = s.runs + 1', [tick]);
  }

  async stocktakes(): Promise<Record<string, number>> {
    const { rows } = await this.pool.query<{ tick: string; runs: number }>('SELECT tick, runs FROM stocktakes');
    return Object.fromEntries(rows.map(({ tick, runs }) => [tick, runs]));
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }
}
