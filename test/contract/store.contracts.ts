import { Locks, type LockStore } from 'nestjs-distributed-lock/core';
import { MUTEX, SEMAPHORE_OF_ONE, WRITE_LOCK } from './kinds.js';
import { locksOpener, type MakeStore, where } from './open-locks.js';
import { eventually } from '../support/eventually.js';
import { latchDriverContract } from './count-down-latch.driver.contract.js';
import { inspectContract } from './inspect.contract.js';
import { leaseDriverContract } from './lease-driver.contract.js';
import { adoptContract } from './mutex.adopt.contract.js';
import { exclusionContract } from './mutex.exclusion.contract.js';
import { extendContract, offersContract, yieldsContract } from './mutex.offers.contract.js';
import { readWriteDriverContract } from './read-write-lock.driver.contract.js';
import { keyKindsContract } from './read-write-lock.kinds.contract.js';
import { semaphoreDriverContract } from './semaphore.driver.contract.js';

/** All that a store of this package must do: a race for each kind of lock, all that operators ask, and the promises of its drivers to the engine. */
export function wholeStoreContract(name: string, open: () => LockStore, { without = [] }: Pick<MakeStore, 'without'> = {}): void {
  const makeStore: MakeStore = Object.assign(() => open(), { without });
  const kinds = without.includes('semaphore') ? [MUTEX, WRITE_LOCK] : [MUTEX, WRITE_LOCK, SEMAPHORE_OF_ONE];
  for (const kind of kinds)
    describe(`a ${kind.name} on ${name}`, () => {
      exclusionContract(makeStore, kind); // G2
      leaseDriverContract(makeStore, kind);
      offersContract(makeStore, kind);
    });
  where(makeStore, 'inspector', () => {
    inspectContract(name, makeStore);
    where(makeStore, 'bus', () => lastingContract(name, makeStore));
  });
  describe(`a mutex on ${name}`, () => {
    // Requests that a driver of shared keys has not.
    extendContract(makeStore);
    adoptContract(makeStore);
    yieldsContract(makeStore);
  });
  describe(`a read/write lock on ${name}`, () => readWriteDriverContract(makeStore));
  where(makeStore, 'semaphore', () => {
    describe(`a semaphore on ${name}`, () => semaphoreDriverContract(makeStore));
  });
  where(makeStore, 'countDownLatch', () => {
    describe(`a count-down latch on ${name}`, () => latchDriverContract(makeStore));
  });
  keyKindsContract(makeStore);
  it(`a store on ${name} that its last Locks have closed serves the next ones, as a module whose app is started again (G9)`, async () => {
    const store = open();
    for (let start = 1; start <= 3; start++) {
      const users = [new Locks(store, { logger: false }), new Locks(store, { logger: false })];
      for (const locks of users) expect(await locks.using(`restarted:${process.pid}`, () => start)).toBe(start);
      await Promise.all(users.map((locks) => locks.close()));
    }
  });
}

function lastingContract(name: string, makeStore: MakeStore): void {
  const { open, newKey } = locksOpener(makeStore);

  it(`operators of ${name} ask a process that has never waited once a lease of it was renewed, and short locks open no inbox`, async () => {
    const [quiet, others] = [open({ app: 'quiet' }), open({ app: 'other' })];
    const key = newKey();
    const { wakeUps } = quiet.store.mutex;
    for (let i = 0; i < 10; i++) await quiet.using(`${key}-short`, () => undefined, { keyTimeout: 60_000 });
    if (wakeUps?.state !== undefined) expect(wakeUps.isOpen).toBe(false);
    const lease = await quiet.acquire(key, { keyTimeout: 5_000, label: 'Import.run' });
    lease.signal.addEventListener('abort', () => void lease.release());
    await eventually(async () => (await others.inspect(key)).holders[0]?.report?.label === 'Import.run');
    if (!makeStore.without?.includes('keys'))
      for await (const { holders } of others.list({ pattern: key })) expect(holders).toMatchObject([{ report: { label: 'Import.run' } }]);
    expect(await others.forceRelease(key, { reason: 'stuck' })).toEqual({ outcome: 'gave back', holder: lease.owner });
    expect(lease.signal.reason).toMatchObject({ revoked: { reason: 'stuck' } });
  });
}
