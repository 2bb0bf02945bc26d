import { Body, Controller, Get, Module, Param, ParseIntPipe, Post, Sse, StreamableFile } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { Readable } from 'node:stream';
import { interval, map, Observable, of } from 'rxjs';
import { currentLease, DistributedLock, LockExceptionFilter } from 'nestjs-distributed-lock';

const buildReport = async () => `built under ${currentLease()?.key}`;

// #region http-orders
@Controller('orders')
export class OrderController {
  /** Key: orders-42-locks. The pipe has converted the id to a number. */
  @Post(':id/items')
  @DistributedLock<OrderController['add']>({ value: 'orders', key: (id) => id, keyTimeout: 10_000, waitTimeout: 2000 })
  async add(@Param('id', ParseIntPipe) id: number, @Body('sku') sku: string): Promise<object> {
    return { id, sku };
  }
}
// #endregion

// #region http-filter
@Module({ controllers: [OrderController], providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }] })
export class OrderModule {}
// #endregion

@Controller('reports')
export class ReportController {
  // #region http-file
  @Get('yearly')
  @DistributedLock({ value: 'report', keyTimeout: 10_000 })
  async yearly(): Promise<StreamableFile> {
    const report = await buildReport(); // locked
    return new StreamableFile(Readable.from(report)); // sent after the lock is released
  }
  // #endregion
}

@Controller('prices')
export class PriceController {
  // #region http-sse
  @Sse('feed')
  @DistributedLock({ value: 'feed', keyTimeout: 10_000, waitTimeout: 1000, onTimeout: () => of({ type: 'busy', data: 'try later' }) })
  feed(): Observable<{ data: string }> {
    return interval(1000).pipe(map((tick) => ({ data: `price ${tick}` })));
  }
  // #endregion
}
