import fc from 'fast-check';
import type { Caller } from './mutex.model.js';

export const KEYS = ['one', 'other'] as const;
export const PROCESSES = ['inbox:a', 'inbox:b', 'inbox:c'] as const;
/** One whose inbox opens only when it may wait already. */
export const LATE: Caller = { inbox: PROCESSES[0], owner: 'late' };
export const LATE_WITHOUT: Caller = { inbox: '', owner: 'late' };
/** Two callers of each process, one that nobody can tell anything, and the late one. */
export const CALLERS: readonly Caller[] = [
  ...PROCESSES.flatMap((inbox) => [1, 2].map((number) => ({ inbox, owner: `${inbox}/${number}` }))),
  { inbox: '', owner: 'polling' },
  LATE,
];

interface OnKey {
  readonly key: string;
}
interface ByCaller extends OnKey {
  readonly caller: Caller;
}

/** What happens to processes, and to what they have sent, whichever scripts they use. */
export type Disturbance =
  { type: 'open' } | { type: 'crash'; inbox: string } | { type: 'reconnect'; inbox: string } | { type: 'repeat'; ago: number };

/** How often that comes among other steps. */
export const disturbances: fc.WeightedArbitrary<Disturbance>[] = [
  { weight: 1, arbitrary: fc.record({ type: fc.constantFrom('crash', 'reconnect'), inbox: fc.constantFrom(...PROCESSES) }) },
  { weight: 1, arbitrary: fc.constant({ type: 'open' }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('repeat'), ago: fc.nat(9) }) },
];

/** What happens next. Whose lease is meant by `holder` is known only then. */
export type OwnStep =
  | {
      type: 'acquire';
      batch: readonly (ByCaller & {
        ttl: number;
        tokens: number;
        ahead: boolean;
        queue: boolean;
        yields: 'nobody' | 'holder' | 'stranger';
      })[];
    }
  | { type: 'release'; batch: readonly (OnKey & { by: Caller | 'holder'; keepFor: number; leaves: boolean })[] }
  | { type: 'renew'; ttl: number; batch: readonly (OnKey & { by: Caller | 'holder' })[] }
  | ({ type: 'extend'; by: Caller | 'holder'; ttl: number; tokens: number } & OnKey)
  | ({ type: 'check' } & ByCaller)
  | ({ type: 'expire' } & OnKey)
  | ({ type: 'classic set' } & OnKey)
  | ({ type: 'classic delete' } & OnKey);

const key = fc.constantFrom(...KEYS);
const caller = fc.constantFrom(...CALLERS, LATE, LATE);
const by = fc.oneof({ weight: 3, arbitrary: fc.constant('holder' as const) }, { weight: 1, arbitrary: caller });
const ttl = fc.constantFrom(20_000, 60_000);
const batchOf = <T>(one: fc.Arbitrary<T>) => fc.array(one, { minLength: 1, maxLength: 3, size: 'small' });
const of = <T extends OwnStep['type']>(type: T) => fc.constant(type);

export const steps: fc.Arbitrary<(OwnStep | Disturbance)[]> = fc.array(
  fc.oneof<fc.WeightedArbitrary<OwnStep | Disturbance>[]>(
    {
      weight: 10,
      arbitrary: fc.record({
        type: of('acquire'),
        batch: batchOf(
          fc.record({
            key,
            caller,
            ttl,
            tokens: fc.constantFrom(1, 1, 32),
            ahead: fc.constantFrom(false, false, false, true),
            queue: fc.boolean(),
            yields: fc.constantFrom('nobody', 'nobody', 'holder', 'stranger'),
          }),
        ),
      }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        type: of('release'),
        batch: batchOf(fc.record({ key, by, keepFor: fc.constantFrom(0, 0, 0, 20_000), leaves: fc.boolean() })),
      }),
    },
    { weight: 2, arbitrary: fc.record({ type: of('renew'), ttl, batch: batchOf(fc.record({ key, by })) }) },
    { weight: 2, arbitrary: fc.record({ type: of('extend'), key, by, ttl, tokens: fc.constantFrom(1, 32) }) },
    { weight: 1, arbitrary: fc.record({ type: of('check'), key, caller }) },
    { weight: 2, arbitrary: fc.record({ type: of('expire'), key }) },
    { weight: 1, arbitrary: fc.record({ type: of('classic set'), key }) },
    { weight: 1, arbitrary: fc.record({ type: of('classic delete'), key }) },
    ...disturbances,
  ),
  { minLength: 1, maxLength: 40, size: 'max' },
);
