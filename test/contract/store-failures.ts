import { StoreError } from 'nestjs-distributed-lock/core';

/** What a driver rejects with when the store does not answer: it may have done what it was asked, and asking again may help. */
export function outage(): StoreError {
  return new StoreError('No answer, on purpose.', { transient: true });
}

/** What a driver rejects with when the store refuses, so that no retry helps. */
export function refusal(): StoreError {
  return new StoreError('NOPERM, on purpose.', { transient: false });
}
