import fc from 'fast-check';
import { CALLERS, disturbances, LATE, LATE_WITHOUT, type Disturbance } from './model.steps.js';
import type { Caller } from './mutex.model.js';
import { WHOLE } from './sharing.model.js';

export const KINDS = { doc: 'read/write lock', pool: 'semaphore' } as const;
export type Key = keyof typeof KINDS;
export const KEYS = Object.keys(KINDS) as Key[];

/** What a caller always asks for: one owner has one wish. */
export const WISHES = new Map(
  CALLERS.map((caller, n) => [caller, { writes: n % 3 === 0, rank: { doc: n > 4 ? 1 : 0, pool: 0 } as const, permits: 1 + (n % 3) }]),
);

WISHES.set(LATE_WITHOUT, WISHES.get(LATE)!);

export const OFFER = 20_000;

export function placeOf(key: Key, caller: Caller): string {
  const { writes, permits } = WISHES.get(caller)!;
  const count = key === 'pool' ? permits : writes ? WHOLE : 1;
  return `${caller.owner}\n${caller.inbox}\n${OFFER}\n${count} ${KINDS[key]}\nheld:before`;
}

interface OnKey {
  readonly key: Key;
}

/** What happens next. Whose lease is meant by `holder` is known only then. */
export type OwnStep =
  | {
      type: 'acquire';
      batch: readonly (OnKey & {
        caller: Caller;
        ttl: number;
        tokens: number;
        /** The first token is to be larger than the clock and any before. */
        ahead: boolean;
        queue: boolean;
        permits: number;
        beside: 'nobody' | 'holder' | 'stranger';
      })[];
    }
  | { type: 'release'; batch: readonly (OnKey & { by: Caller | 'holder'; keepFor: number; leaves: boolean })[] }
  | { type: 'renew'; ttl: number; batch: readonly (OnKey & { by: Caller | 'holder' })[] }
  | ({ type: 'check'; caller: Caller } & OnKey)
  | ({ type: 'expire'; all: boolean; which: number } & OnKey);

const key = fc.constantFrom(...KEYS);
const caller = fc.constantFrom(...CALLERS, LATE, LATE);
const by = fc.oneof({ weight: 3, arbitrary: fc.constant('holder' as const) }, { weight: 1, arbitrary: caller });
const ttl = fc.constantFrom(20_000, 60_000);
const batchOf = <T>(one: fc.Arbitrary<T>) => fc.array(one, { minLength: 1, maxLength: 4, size: 'small' });
const of = <T extends OwnStep['type']>(type: T) => fc.constant(type);

const stepsWith = (permits: fc.Arbitrary<number>): fc.Arbitrary<(OwnStep | Disturbance)[]> =>
  fc.array(
    fc.oneof<fc.WeightedArbitrary<OwnStep | Disturbance>[]>(
      {
        weight: 12,
        arbitrary: fc.record({
          type: of('acquire'),
          batch: batchOf(
            fc.record({
              key,
              caller,
              ttl,
              tokens: fc.constantFrom(1, 32),
              ahead: fc.constantFrom(false, false, false, true),
              queue: fc.boolean(),
              permits,
              beside: fc.constantFrom('nobody', 'nobody', 'nobody', 'holder', 'stranger'),
            }),
          ),
        }),
      },
      {
        weight: 7,
        arbitrary: fc.record({
          type: of('release'),
          batch: batchOf(fc.record({ key, by, keepFor: fc.constantFrom(0, 0, 0, 20_000), leaves: fc.boolean() })),
        }),
      },
      { weight: 2, arbitrary: fc.record({ type: of('renew'), ttl, batch: batchOf(fc.record({ key, by })) }) },
      { weight: 1, arbitrary: fc.record({ type: of('check'), key, caller }) },
      { weight: 3, arbitrary: fc.record({ type: of('expire'), key, all: fc.boolean(), which: fc.nat(5) }) },
      ...disturbances,
    ),
    { minLength: 1, maxLength: 40, size: 'max' },
  );

/** The number of permits never changes, or all the time. */
export const steps = fc.oneof(stepsWith(fc.constant(3)), stepsWith(fc.constantFrom(3, 3, 3, 4, 5)));
