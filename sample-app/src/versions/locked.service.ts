import { Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';
import { Sale, type Receipt } from '../stock/sale.js';
import type { StockVersion } from './stock-version.js';

/** Exact, on any number of instances. */
@Injectable()
export class LockedService implements StockVersion {
  constructor(private readonly sale: Sale) {}

  // The SKU is part of the key: who wants a pear does not wait for an apple. The units are not.
  @DistributedLock({ prefix: 'shop-', value: 'stock', paramLock: ['0'], keyTimeout: 10_000, retryCount: 0, retryInterval: 200 })
  reduce(sku: string, units: number): Promise<Receipt> {
    return this.sale.sell(sku, units);
  }
}
