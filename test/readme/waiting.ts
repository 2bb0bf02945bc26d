import { Controller, Injectable, Param, Post } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { DistributedLock, LockExceptionFilter } from 'nestjs-distributed-lock';

/** What the locked methods do: a test makes it slow. */
export abstract class Work {
  abstract do(what: string): Promise<string>;
}

@Controller('baskets')
export class BasketController {
  constructor(private readonly work: Work) {}

  // #region patience-request
  /** A user waits for the response: two seconds, then LockExceptionFilter answers 423. */
  @Post(':id/order')
  @DistributedLock<BasketController['order']>({ value: 'basket', key: (id) => id, keyTimeout: 10_000, waitTimeout: 2000 })
  async order(@Param('id') id: string): Promise<string> {
    return this.work.do(`order ${id}`);
  }
  // #endregion
}

@Injectable()
export class NightShift {
  constructor(private readonly work: Work) {}

  // #region patience-job
  /** Four random values of 250 to 500 ms: 1 to 2 s in total. Then the job fails, and the queue tries it again later. */
  @DistributedLock<NightShift['book']>({ value: 'stock', key: (sku) => sku, keyTimeout: 10_000, retryCount: 5, retryInterval: 250 })
  async book(sku: string): Promise<string> {
    return this.work.do(`book ${sku}`);
  }
  // #endregion

  // #region fair
  /** Buyers are served in order of arrival, whichever instance they use. */
  @DistributedLock({ value: 'tickets', keyTimeout: 10_000, waitTimeout: 60_000, fair: true })
  async sellTicket(buyer: string): Promise<string> {
    return this.work.do(`ticket for ${buyer}`);
  }
  // #endregion
}

export const filter = { provide: APP_FILTER, useClass: LockExceptionFilter };
