import type { Oracle } from './oracle.js';

/** G2 with the token checked at the resource: no update is ever lost, in no group of faults. */
export const fence: Oracle = (history, { fenced }) => {
  const at = history.at(-1)?.t ?? 0;
  return fenced
    .filter(({ counter, accepted, damaged }) => counter !== accepted || damaged > 0)
    .map(({ key, counter, accepted, damaged }) => {
      const what = `the fenced counter is ${counter} after ${accepted} accepted writes, ${damaged} of them over a value that was not read`;
      return { oracle: 'fence', guarantee: 'G2', key, at, what };
    });
};
