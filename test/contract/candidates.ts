import type { LeaderElection, Locks, Term } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';

/** Leads until its term is to end. */
export function untilToldToEnd({ signal }: Term): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener('abort', () => resolve());
  });
}

/** A candidate that leads until it is told to end, and what became of it. */
export interface Candidate {
  readonly election: LeaderElection;
  /** Its terms, the last one last. */
  readonly terms: Term[];
  readonly outcome: Promise<unknown>;
}

/** @param name of the candidate, put into `history` with each term */
export function candidate(election: LeaderElection, history: string[] = [], name = ''): Candidate {
  const terms: Term[] = [];
  const outcome = election.run(async (term) => {
    terms.push(term);
    history.push(name);
    await untilToldToEnd(term);
  });
  outcome.catch(() => undefined);
  return { election, terms, outcome };
}

/** Resolves when somebody of these Locks has found a key taken; a fair caller has a queue entry by then. */
export const waits = (locks: Locks): Promise<void> =>
  new Promise((resolve) => {
    const stop = locks.on('waiting', () => {
      stop();
      resolve();
    });
  });

export const elected = ({ terms }: Candidate, times = 1): Promise<Term> =>
  eventually(() => {
    if (terms.length < times) throw new Error(`elected ${terms.length} times`);
    return terms[times - 1]!;
  });
