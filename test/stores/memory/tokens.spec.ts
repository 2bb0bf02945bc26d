import type { AcquireRequest, LeaseDriver, LockStore, Share } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';

const READ: Share = { count: 1, permits: Infinity, rank: 0 };
const WRITE: Share = { count: Infinity, permits: Infinity, rank: 0 };
const PERMIT: Share = { count: 1, permits: 3, rank: 0 };
const KINDS: [name: string, driverOf: (store: LockStore) => LeaseDriver, share: Share | undefined][] = [
  ['mutex', ({ mutex }) => mutex, undefined],
  ['write lock', ({ readWriteLock }) => readWriteLock!.write, WRITE],
  ['read lock', ({ readWriteLock }) => readWriteLock!.read, READ],
  ['semaphore', ({ semaphore }) => semaphore!, PERMIT],
];

async function tokenOf(driver: LeaseDriver, owner: string, request: Partial<AcquireRequest> = {}): Promise<number> {
  const reply = await driver.acquire({ key: 'key', owner, ttl: 20_000, tokens: 1, queue: false, ...request });
  if (!reply.granted || reply.token === null) throw new Error('It should have been granted, with a token.');
  return reply.token;
}

/** Larger than any token of the clock. */
const LARGE = 2 ** 52;

describe.each(KINDS)('a fencing token of a %s in memory', (_name, driverOf, share) => {
  let driver: LeaseDriver;

  beforeEach(() => (driver = driverOf(memoryStore())));

  const release = (owner: string) => driver.release({ key: 'key', owner, keepFor: 0 });

  it('is no smaller than the floor of its request, and later tokens are larger', async () => {
    expect(await tokenOf(driver, 'a', { share })).toBeLessThan(LARGE);
    await release('a');
    const raised = await tokenOf(driver, 'b', { share, floor: LARGE, tokens: 5 });
    expect(raised).toBeGreaterThanOrEqual(LARGE);
    await release('b');
    const next = await tokenOf(driver, 'c', { share });
    // Readers share the last token.
    if (share === READ) expect(next).toBe(raised);
    else expect(next).toBeGreaterThanOrEqual(raised + 5);
  });

  it('is no larger for a floor that is below it', async () => {
    expect(await tokenOf(driver, 'a', { share, floor: 1 })).toBeLessThan(LARGE);
    await release('a');
    const raised = await tokenOf(driver, 'b', { share, floor: LARGE });
    await release('b');
    expect(await tokenOf(driver, 'c', { share, floor: 1 })).toBe(share === READ ? raised : raised + 1);
  });
});

it('tells when a token was given', async () => {
  const { mutex } = memoryStore();
  const before = Date.now();
  const token = await tokenOf(mutex, 'a');
  const time = mutex.timeOf!(token).getTime();
  expect(time).toBeGreaterThanOrEqual(before);
  expect(time).toBeLessThanOrEqual(Date.now());
});
