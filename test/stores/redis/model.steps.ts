import fc from 'fast-check';
import type { Caller } from './queue.model.js';

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

/** What happens to processes, and to what they have sent, whichever scripts they use. */
export type Disturbance =
  { type: 'open' } | { type: 'crash'; inbox: string } | { type: 'reconnect'; inbox: string } | { type: 'repeat'; ago: number };

export const crashes: fc.Arbitrary<Disturbance> = fc.record({
  type: fc.constantFrom('crash', 'reconnect'),
  inbox: fc.constantFrom(...PROCESSES),
});
export const repeats: fc.Arbitrary<Disturbance> = fc.record({ type: fc.constant('repeat'), ago: fc.nat(9) });

type By = Caller | 'holder';

/** What is asked of the scripts of all leases. Whose lease is meant by `holder` is known only then. */
export type LeaseStep<Key extends string> =
  | { type: 'release'; batch: readonly { key: Key; by: By; keepFor: number; leaves: boolean }[] }
  | { type: 'renew'; ttl: number; batch: readonly { key: Key; by: By }[] }
  | { type: 'check'; key: Key; caller: Caller };

export interface AcquireStep<Key extends string, More> {
  type: 'acquire';
  batch: readonly ({ key: Key; caller: Caller; ttl: number; tokens: number; ahead: boolean; queue: boolean } & More)[];
}

/** Parts of the steps on these keys. */
export function leaseSteps<Key extends string>(keys: readonly Key[]) {
  const key = fc.constantFrom(...keys);
  const caller = fc.constantFrom(...CALLERS, LATE, LATE);
  const by = fc.oneof({ weight: 3, arbitrary: fc.constant('holder' as const) }, { weight: 1, arbitrary: caller });
  const ttl = fc.constantFrom(20_000, 60_000);
  const tokens = fc.constantFrom(1, 1, 32);
  const batchOf = <T>(one: fc.Arbitrary<T>) => fc.array(one, { minLength: 1, maxLength: 4, size: 'small' });
  const of = <T extends string>(type: T) => fc.constant(type);
  /** What every request has; `ahead`: its first token is to be larger than the clock and any before. */
  const request = { key, caller, ttl, tokens, ahead: fc.constantFrom(false, false, false, true), queue: fc.boolean() };
  const common: fc.WeightedArbitrary<LeaseStep<Key> | Disturbance>[] = [
    {
      weight: 7,
      arbitrary: fc.record({
        type: of('release'),
        batch: batchOf(fc.record({ key, by, keepFor: fc.constantFrom(0, 0, 0, 20_000), leaves: fc.boolean() })),
      }),
    },
    { weight: 2, arbitrary: fc.record({ type: of('renew'), ttl, batch: batchOf(fc.record({ key, by })) }) },
    { weight: 1, arbitrary: fc.record({ type: of('check'), key, caller }) },
    { weight: 1, arbitrary: crashes },
    { weight: 1, arbitrary: fc.constant({ type: 'open' }) },
    { weight: 4, arbitrary: repeats },
  ];
  return { key, by, ttl, tokens, request, common, batchOf, of };
}

export const series = <Step>(...steps: fc.WeightedArbitrary<Step>[]): fc.Arbitrary<Step[]> =>
  fc.array(fc.oneof<fc.WeightedArbitrary<Step>[]>(...steps), { minLength: 1, maxLength: 40, size: 'max' });
