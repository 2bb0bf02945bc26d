import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import type { Pool } from 'pg';
import { StockStore } from './stock.store.js';

export class PostgresStockStore extends StockStore implements OnModuleInit, OnApplicationShutdown {
  constructor(private readonly pool: Pool) {
    super();
  }

  async onModuleInit(): Promise<void> {
    // Two instances that create a table at the same time would fail.
    await this.pool.query(
      'BEGIN; SELECT pg_advisory_xact_lock(1); CREATE TABLE IF NOT EXISTS stock (sku text PRIMARY KEY, units int NOT NULL); COMMIT',
    );
  }

  async read(sku: string): Promise<number | null> {
    const { rows } = await this.pool.query<{ units: number }>('SELECT units FROM stock WHERE sku = $1', [sku]);
    return rows[0]?.units ?? null;
  }

  async write(sku: string, units: number): Promise<void> {
    await this.pool.query('INSERT INTO stock VALUES ($1, $2) ON CONFLICT (sku) DO UPDATE SET units = $2', [sku, units]);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }
}
