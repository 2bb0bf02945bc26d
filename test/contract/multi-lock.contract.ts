import { multiLeaseContract } from './multi-lock.lease.contract.js';
import { multiLockTakingContract } from './multi-lock.taking.contract.js';
import { multiLockTiesContract } from './multi-lock.ties.contract.js';
import type { MakeStore } from './open-locks.js';

/** Everything that a multi-lock promises beyond what a mutex does, on one store and over two. Parameters as of {@link mutexContract}. */
export function multiLockContract(name: string, makeStore: MakeStore, remains: () => Promise<string[]> | string[]): void {
  describe(`a multi-lock on ${name}`, () => {
    multiLockTakingContract(makeStore, remains);
    multiLeaseContract(makeStore);
    multiLockTiesContract(makeStore);
  });
}
