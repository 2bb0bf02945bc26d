import { Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';
import { Shelf } from './stand-ins/shelf.js';

@Injectable()
export class OrderLinesService {
  constructor(private readonly shelf: Shelf) {}

  // #region siblings
  @DistributedLock({ value: 'shelves' })
  async take(sku: string): Promise<void> {
    await this.shelf.write(sku, (await this.shelf.read(sku)) - 1);
  }

  @DistributedLock({ value: 'shelves' })
  async takeTwo(sku: string): Promise<void> {
    await this.take(sku); // re-enters: the call chain has the key already
    await this.take(sku); // one after the other; with Promise.all they would run at the same time and lose one
  }
  // #endregion

  // #region siblings-at-once
  @DistributedLock({ value: 'shelves' })
  async takeTwoAtOnce(sku: string): Promise<void> {
    await Promise.all([this.take(sku), this.take(sku)]);
  }
  // #endregion
}
