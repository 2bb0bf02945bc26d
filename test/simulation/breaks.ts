import type { StoreKind } from './inside.js';

/** Mutants that the simulation must find, by their titles: of exclusion, validity, tokens, waiting, observed time, and the votes of a quorum. */
export const BREAKS: readonly { store: StoreKind; defect: string }[] = [
  { store: 'records', defect: 'records: a release does not compare the owner' },
  { store: 'records', defect: 'a grant may be lost in a crash of the server' },
  { store: 'records', defect: 'a message grants the key, without a confirmation' },
  { store: 'records', defect: 'validity counts from the reply, not from the request' },
  { store: 'records', defect: 'an owner id is used again' },
  { store: 'records', defect: 'a caller waits longer than its wait timeout' },
  { store: 'records', defect: 'a key is asked for no more once an exchange of it gets no answer' },
  { store: 'records', defect: 'a renewal counts from the reply, not from the request' },
  { store: 'records', defect: 'a renewal prolongs the leases of all owners of a key' },
  { store: 'records', defect: 'an adoption does not end the hold of the giver' },
  { store: 'observed', defect: 'two requests have the same stamp' },
  { store: 'observed', defect: 'what was written is as old as the last count before it' },
  { store: 'observed', defect: 'an own lease is as old as the first count' },
  { store: 'observed', defect: 'a renewal of the same length is no new request to others' },
  { store: 'quorum', defect: 'half of the members are a majority' },
  { store: 'quorum', defect: 'a token counts that one member has recorded' },
];
