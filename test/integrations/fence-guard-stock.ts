import { Inject, Injectable } from '@nestjs/common';
import { Transactional, TransactionHost } from '@nestjs-cls/transactional';
import type { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { DistributedLock } from 'nestjs-distributed-lock';
import { drizzle, Fenced, fenceGuard, typeorm } from 'nestjs-distributed-lock/fence-guard';
import { DataSource } from 'typeorm';

// #region fence-guard
const fence = fenceGuard({ dialect: 'postgres' });

@Injectable()
export class StockService {
  constructor(@Inject(DataSource) private readonly db: DataSource) {}

  @DistributedLock({ value: 'stock', paramLock: ['0'] })
  async reduce(sku: string): Promise<void> {
    await this.db.transaction(async (tx) => {
      await fence.check(typeorm(tx)); // first: it refuses a holder that has lost its lock
      const [row] = await tx.query<{ units: number }[]>('SELECT units FROM stock WHERE sku = $1', [sku]);
      if (!row?.units) throw new Error('Sold out');
      await tx.query('UPDATE stock SET units = $1 WHERE sku = $2', [row.units - 1, sku]);
    });
  }
}
// #endregion

// #region fence-guard-migrate
/** Once, as part of the app's migrations: `fence.ddl()` is the same statement as text. */
export async function up(db: DataSource): Promise<void> {
  await db.transaction((tx) => fence.migrate(typeorm(tx)));
}
// #endregion

@Injectable()
export class FencedStockService {
  constructor(@Inject(TransactionHost) private readonly host: TransactionHost<TransactionalAdapterTypeOrm>) {}

  // #region fence-guard-decorator
  @DistributedLock({ value: 'stock', paramLock: ['0'] }) // the lock is the outermost
  @Transactional()
  @Fenced<FencedStockService>(fence, (self) => typeorm(self.host.tx)) // the first statement of the transaction
  async reduce(sku: string): Promise<void> {
    await this.host.tx.query('UPDATE stock SET units = units - 1 WHERE sku = $1', [sku]);
  }
  // #endregion
}

@Injectable()
export class DrizzleStockService {
  constructor(private readonly db: NodePgDatabase) {}

  // #region fence-guard-transaction
  @DistributedLock({ value: 'stock', paramLock: ['0'] })
  async reduce(sku: string): Promise<void> {
    await fence.transaction(
      this.db,
      (tx) => drizzle(tx, sql),
      async (tx) => void (await tx.execute(sql`UPDATE stock SET units = units - 1 WHERE sku = ${sku}`)),
    );
  }
  // #endregion
}
