import type { StoreKind } from './inside.js';

/** Mutants that the simulation must find, by their titles: of exclusion, of tokens, of waiting, of observed time and of the votes of a quorum. */
export const BREAKS: readonly { store: StoreKind; defect: string }[] = [
  { store: 'records', defect: 'records: a release does not compare the owner' },
  { store: 'records', defect: 'a grant may be lost in a crash of the server' },
  { store: 'records', defect: 'a message grants the key, without a confirmation' },
  { store: 'records', defect: 'validity counts from the reply, not from the request' },
  { store: 'records', defect: 'an owner id is used again' },
  { store: 'observed', defect: 'two requests have the same stamp' },
  { store: 'observed', defect: 'what was written is as old as the last count before it' },
];
