import { Injectable } from '@nestjs/common';
import { currentLease, DistributedLock } from 'nestjs-distributed-lock';
import type { Booted } from '../nest/boot.js';
import { SharedCounter } from '../support/shared-counter.js';

/** A lock that all who use it want at once, and are ready to wait for. */
export const PATIENT = { keyTimeout: 60_000, waitTimeout: 60_000, retryInterval: 2 };

export const COUNT_KEY = 'count-locks';

let counter: SharedCounter;
let keys: unknown[];
beforeEach(() => ([counter, keys] = [new SharedCounter(), []]));

/** The body of whatever is locked under {@link COUNT_KEY}: only that keeps two calls apart, whatever instances they are made on. */
export async function count(): Promise<number> {
  keys.push(currentLease()?.key);
  return counter.increment();
}

/** The keys under which the bodies of this test ran. */
export const keysSeen = (): unknown[] => keys;

@Injectable()
export class Counter {
  @DistributedLock({ value: 'count', ...PATIENT })
  async count(): Promise<number> {
    return count();
  }
}

/** Six calls at once, over all of these: each runs once under its lock, which it has taken once, and none beside another. */
export async function expectOneAtATime(
  { acquired }: Pick<Booted, 'acquired'>,
  ...counters: { count(): Promise<unknown> }[]
): Promise<void> {
  await Promise.all(Array.from({ length: 6 }, async (_, index) => counters[index % counters.length]?.count()));
  expect(counter).toMatchObject({ value: 6, overlaps: 0 });
  expect(keys).toEqual(Array(6).fill(COUNT_KEY));
  expect(acquired).toEqual(Array(6).fill(COUNT_KEY));
}
