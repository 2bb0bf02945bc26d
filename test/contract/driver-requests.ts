import type { AcquireReply, AcquireRequest, LeaseDriver, RenewRequest } from '../../lib/core/store/lease-driver.js';
import type { Locks } from '../../lib/locks.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore } from './open-locks.js';

export const GRANTED = { granted: true };
export const TAKEN = { granted: false };

export async function tokenOf(grant: Promise<AcquireReply>): Promise<number> {
  const reply = await grant;
  if (!reply.granted) throw new Error(`It should have been granted: ${reply.holder} has it.`);
  return reply.token!;
}

/** Requests of a driver about one key, both of which are new in each test. Call it inside a `describe`. */
export function driverRequests(makeStore: MakeStore, kind?: Kind) {
  const { open, newKey, driver: newDriver } = locksOpener(makeStore, kind);
  let locks: Locks;
  let driver: LeaseDriver;
  let key: string;
  const setUp = () => {
    locks = open();
    driver = newDriver(locks);
    key = newKey();
  };
  beforeEach(setUp);
  const look = (owner: string, of = key) => driver.check({ key: of, owner });
  const stateOf = async (owner: string) => (await look(owner)).state;
  return {
    /** Of a test that begins again. */
    setUp,
    newKey,
    newDriver,
    locks: () => locks,
    driver: () => driver,
    key: () => key,
    acquire: (owner: string, request: Partial<AcquireRequest> = {}) =>
      driver.acquire({ key, owner, ttl: 20_000, tokens: 1, queue: false, ...request }),
    renewAll: (...batch: (Omit<RenewRequest, 'key'> & { key?: string })[]) =>
      Promise.all(driver.renew(batch.map((request) => ({ key, ...request })))),
    release: (owner: string, keepFor = 0) => driver.release({ key, owner, keepFor }),
    leave: (owner: string) => driver.leave({ key, owner }),
    look,
    stateOf,
    states: (...owners: string[]) => Promise.all(owners.map(stateOf)),
    remaining: async (owner = 'a') => (await look(owner)).remaining,
  };
}
