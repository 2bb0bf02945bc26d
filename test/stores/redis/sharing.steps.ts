import fc from 'fast-check';
import { OFFER } from './lease.play.js';
import { CALLERS, LATE, LATE_WITHOUT, leaseSteps, series, type Disturbance, type LeaseStep } from './model.steps.js';
import type { Caller } from './queue.model.js';
import { WHOLE } from './sharing.model.js';

export const KINDS = { doc: 'read/write lock', pool: 'semaphore' } as const;
export type Key = keyof typeof KINDS;
export const KEYS = Object.keys(KINDS) as Key[];

/** What a caller always asks for: one owner has one wish. */
export const WISHES = new Map(
  CALLERS.map((caller, n) => [caller, { writes: n % 3 === 0, rank: { doc: n > 4 ? 1 : 0, pool: 0 } as const, permits: 1 + (n % 3) }]),
);

WISHES.set(LATE_WITHOUT, WISHES.get(LATE)!);

export function placeOf(key: Key, caller: Caller): string {
  const { writes, permits } = WISHES.get(caller)!;
  const count = key === 'pool' ? permits : writes ? WHOLE : 1;
  return `${caller.owner}\n${caller.inbox}\n${OFFER}\n${count} ${KINDS[key]}\nheld:before`;
}

export type OwnStep =
  | LeaseStep<Key>
  | {
      type: 'acquire';
      batch: readonly {
        key: Key;
        caller: Caller;
        ttl: number;
        tokens: number;
        ahead: boolean;
        queue: boolean;
        permits: number;
        beside: 'nobody' | 'holder' | 'stranger';
      }[];
    }
  | { type: 'expire'; key: Key; all: boolean; which: number };

const { key, request, common, batchOf, of } = leaseSteps(KEYS);

const stepsWith = (permits: fc.Arbitrary<number>) =>
  series<OwnStep | Disturbance>(
    {
      weight: 12,
      arbitrary: fc.record({
        type: of('acquire'),
        batch: batchOf(fc.record({ ...request, permits, beside: fc.constantFrom('nobody', 'nobody', 'nobody', 'holder', 'stranger') })),
      }),
    },
    { weight: 3, arbitrary: fc.record({ type: of('expire'), key, all: fc.boolean(), which: fc.nat(5) }) },
    ...common,
  );

/** The number of permits never changes, or all the time. */
export const steps = fc.oneof(stepsWith(fc.constant(3)), stepsWith(fc.constantFrom(3, 3, 3, 4, 5)));
