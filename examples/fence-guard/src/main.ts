import { Controller, Module, Param, Post, ConflictException } from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import { InjectDataSource, TypeOrmModule } from '@nestjs/typeorm';
import { DistributedLock, DistributedLockModule, LockExceptionFilter } from 'nestjs-distributed-lock';
import { fenceGuard, typeorm } from 'nestjs-distributed-lock/fence-guard';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { setTimeout as pause } from 'node:timers/promises';
import { DataSource } from 'typeorm';

const url = process.env.DATABASE_URL ?? 'postgres://postgres@localhost:5432/postgres';
const fence = fenceGuard({ dialect: 'postgres' });

@Controller('stock/:sku')
export class StockController {
  constructor(@InjectDataSource() private readonly db: DataSource) {}

  /** Once, before the first instance starts: part of your migrations. */
  static async prepare(db: DataSource): Promise<void> {
    await db.transaction(async (tx) => {
      await tx.query('SELECT pg_advisory_xact_lock(1)');
      await fence.migrate(typeorm(tx));
      await tx.query('CREATE TABLE IF NOT EXISTS stock (sku text PRIMARY KEY, units int NOT NULL)');
      await tx.query(`INSERT INTO stock VALUES ('apple', 20) ON CONFLICT DO NOTHING`);
    });
  }

  @Post('buy')
  @DistributedLock({ value: 'stock', key: (sku: string) => sku, keyTimeout: 3_000, waitTimeout: 30_000 })
  async buy(@Param('sku') sku: string): Promise<{ left: number }> {
    console.log(`Packs an ${sku}`);
    await pause(Number(process.env.PACK_MS ?? 20)); // a process that is paused here for more than 3 s loses its lock, and does not know it
    return this.db.transaction(async (tx) => {
      await fence.check(typeorm(tx)); // first: refuses it, if another buyer has been here since
      const [row] = await tx.query<{ units: number }[]>('SELECT units FROM stock WHERE sku = $1', [sku]);
      if (!row?.units) throw new ConflictException(`There is no ${sku} left.`);
      await tx.query('UPDATE stock SET units = $1 WHERE sku = $2', [row.units - 1, sku]);
      return { left: row.units - 1 };
    });
  }
}

@Module({
  imports: [
    TypeOrmModule.forRoot({ type: 'postgres', url }),
    DistributedLockModule.forRoot({ store: postgresStore({ url, schema: 'create' }), namespace: 'fence-guard:' }),
  ],
  controllers: [StockController],
  providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }],
})
class AppModule {}

const app = await NestFactory.create(AppModule);
app.enableShutdownHooks(); // a stopping app waits for its locked methods
await StockController.prepare(app.get(DataSource));
await app.listen(process.env.PORT ?? 3000);
console.log(`The shop is open at ${await app.getUrl()}`);
