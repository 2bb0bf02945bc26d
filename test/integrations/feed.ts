import { Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';
import { from, Observable, of } from 'rxjs';

@Injectable()
export class FeedService {
  // #region streams-observable
  /** Each subscription acquires the lock, calls the method, and holds the lock until it ends. */
  @DistributedLock({ value: 'prices', keyTimeout: 10_000, waitTimeout: 5000 })
  prices(): Observable<number> {
    return from([1, 2, 3]);
  }

  /** Without a declared return type, set `returns`. */
  @DistributedLock({ value: 'stock', keyTimeout: 10_000, returns: 'observable' })
  stock() {
    return of('apple', 'pear');
  }
  // #endregion

  // #region streams-iterable
  @DistributedLock({ value: 'rows', keyTimeout: 10_000 })
  async *rows(): AsyncGenerator<number> {
    for (const row of [1, 2, 3]) yield row; // inside the call chain: currentLease() is the lease
  }
  // #endregion
}
