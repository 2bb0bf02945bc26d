import { Injectable } from '@nestjs/common';
import { currentLease, DistributedLock } from 'nestjs-distributed-lock';
import { from, Observable } from 'rxjs';

export abstract class Supplier {
  abstract load(): Promise<string[]>;
}

@Injectable()
export class CatalogueService {
  private last = ['apple', 'pear'];

  constructor(private readonly supplier: Supplier) {}

  // #region on-timeout
  @DistributedLock({ waitTimeout: 0, onTimeout: ({ target }) => (target as CatalogueService).last })
  async rebuild(): Promise<string[]> {
    this.last = await this.supplier.load();
    return this.last;
  }
  // #endregion

  // #region streams
  @DistributedLock({ value: 'catalogue' })
  watch(): Observable<string> {
    return from(this.last); // locked from each subscription to its end
  }

  @DistributedLock({ value: 'catalogue' })
  async *list(): AsyncGenerator<string> {
    currentLease()!.assertHeld(); // in here the lock is held; in the `for await` of the caller, currentLease() is undefined
    yield* this.last;
  }
  // #endregion
}
