import { Inject, Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';
import { DataSource } from 'typeorm';
import { runOnTransactionCommit, Transactional } from 'typeorm-transactional';

@Injectable()
export class TypeOrmStockService {
  readonly notified: string[] = [];
  constructor(@Inject(DataSource) private readonly database: DataSource) {}

  @DistributedLock({ value: 'stock', paramLock: ['0'], keyTimeout: 10_000, waitTimeout: 30_000 }) // the upper one is the outer one
  @Transactional()
  async reduce(sku: string): Promise<void> {
    const [row] = await this.database.query<{ units: number }[]>('SELECT units FROM stock WHERE sku = ?', [sku]);
    if (!row?.units) throw new Error('Sold out'); // rolled back; then the lock is released
    await this.database.query('UPDATE stock SET units = ? WHERE sku = ?', [row.units - 1, sku]);
    runOnTransactionCommit(() => void this.notified.push(`${sku} sold`));
  } // committed; then the lock is released
}
