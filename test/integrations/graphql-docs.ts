import { Injectable } from '@nestjs/common';
import { Args, Int, Mutation, Query, Resolver, Subscription } from '@nestjs/graphql';
import { currentLease, DistributedLock } from 'nestjs-distributed-lock';
import { Channel } from './graphql-channel.js';

@Injectable()
export class StockService {
  readonly counted: (string | undefined)[] = [];
  readonly changes = new Channel<number>();
  private units = 10;

  async reduce(_shelf: number, units: number): Promise<number> {
    this.counted.push(currentLease()?.key);
    return (this.units -= units);
  }
}

@Resolver()
export class StockResolver {
  constructor(private readonly stock: StockService) {}

  // A schema needs a query.
  @Query(() => Int)
  async shelves(): Promise<number> {
    return 3;
  }

  // #region graphql-mutation
  /** stock-7-locks */
  @Mutation(() => Int)
  @DistributedLock<StockResolver['reduce']>({ value: 'stock', key: (shelf) => shelf, keyTimeout: 10_000, waitTimeout: 2000 })
  async reduce(@Args('shelf', { type: () => Int }) shelf: number, @Args('units', { type: () => Int }) units: number): Promise<number> {
    return this.stock.reduce(shelf, units);
  }
  // #endregion

  // #region graphql-subscription
  /** One subscriber at a time, across all instances. The next one starts when this one leaves. */
  @Subscription(() => Int, { resolve: (units: number) => units })
  @DistributedLock({ value: 'changes', returns: 'iterable', keyTimeout: 10_000, waitTimeout: Infinity })
  changes() {
    return this.stock.changes.iterate(0); // such as pubSub.asyncIterableIterator('changes')
  }
  // #endregion
}
