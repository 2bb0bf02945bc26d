import fc from 'fast-check';
import { leaseSteps, series, type Disturbance, type LeaseStep } from './model.steps.js';
import type { Caller } from './queue.model.js';

export const KEYS = ['one', 'other'] as const;
type Key = (typeof KEYS)[number];

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
        yields: 'nobody' | 'holder' | 'stranger';
      }[];
    }
  | { type: 'extend'; key: Key; by: Caller | 'holder'; ttl: number; tokens: number }
  | { type: 'expire' | 'classic set' | 'classic delete'; key: Key };

const { key, by, ttl, tokens, request, common, batchOf, of } = leaseSteps(KEYS);

export const steps = series<OwnStep | Disturbance>(
  {
    weight: 10,
    arbitrary: fc.record({
      type: of('acquire'),
      batch: batchOf(fc.record({ ...request, yields: fc.constantFrom('nobody', 'nobody', 'holder', 'stranger') })),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: of('extend'), key, by, ttl, tokens }) },
  { weight: 2, arbitrary: fc.record({ type: of('expire'), key }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constantFrom('classic set', 'classic delete'), key }) },
  ...common,
);
