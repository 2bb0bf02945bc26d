import { lua } from '../lua.generated.js';

const OFFERING = lua['prelude'] + lua['queue'] + lua['mutex/offer'];
const READING = lua['count-down-latch/read'];

/** Each script as it is sent: what it shares with others stands before it. */
export const scripts = {
  latch: {
    trySetCount: READING + lua['count-down-latch/try-set-count'],
    countDown: READING + lua['count-down-latch/count-down'],
    look: READING + lua['count-down-latch/look'],
    leave: lua['count-down-latch/leave'],
  },
  since: lua['since'],
  keepFences: lua['mutex/renew'],
  look: lua['prelude'] + lua['inspect/bodies'] + lua['inspect/look'],
  seize: OFFERING + lua['inspect/seize'],
} as const;

/** The scripts of each kind of lock. */
export type LeaseScripts = Readonly<Record<'acquire' | 'release' | 'renew' | 'check', string>>;
type MutexScripts = LeaseScripts & Record<'extend' | 'adopt', string>;

/** @param fenceTimeout milliseconds. A constant of the scripts, since each argument costs time. */
export function leaseScripts(fenceTimeout: number): { mutex: MutexScripts; sharing: LeaseScripts } {
  const fences = `local FENCE_TIMEOUT = '${fenceTimeout}'\n`;
  const sharing = fences + lua['tokens'] + lua['prelude'] + lua['queue'] + lua['sharing/holders'] + lua['sharing/offers'];
  return {
    mutex: {
      acquire: fences + lua['mutex/acquire-free'] + lua['tokens'] + OFFERING + lua['mutex/acquire'],
      release: lua['mutex/release-unqueued'] + OFFERING + lua['mutex/release'],
      renew: lua['mutex/renew'],
      extend: fences + lua['tokens'] + lua['mutex/extend'],
      adopt: fences + lua['tokens'] + lua['mutex/adopt'],
      check: lua['mutex/check'],
    },
    sharing: {
      acquire: sharing + lua['sharing/kind'] + lua['sharing/acquire'],
      release: sharing + lua['sharing/release'],
      renew: lua['sharing/renew'],
      check: lua['sharing/check'],
    },
  };
}
