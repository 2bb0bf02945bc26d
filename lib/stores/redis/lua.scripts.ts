import { lua } from './lua.generated.js';

const OFFERING = lua['inbox'] + lua['mutex/offer'];
const SERVING = lua['inbox'] + lua['sharing/holders'] + lua['sharing/answers'];
const READING = lua['count-down-latch/read'];

/** Each script as it is sent: what it shares with others stands before it. */
export const scripts = {
  mutex: {
    acquire: OFFERING + lua['mutex/acquire'],
    release: OFFERING + lua['mutex/release'],
    renew: lua['mutex/renew'],
    extend: lua['mutex/extend'],
    check: lua['mutex/check'],
  },
  sharing: {
    acquire: SERVING + lua['sharing/acquire'],
    release: SERVING + lua['sharing/release'],
    renew: lua['sharing/renew'],
    check: lua['sharing/check'],
  },
  latch: {
    trySetCount: READING + lua['count-down-latch/try-set-count'],
    countDown: READING + lua['count-down-latch/count-down'],
    look: READING + lua['count-down-latch/look'],
    leave: lua['count-down-latch/leave'],
  },
  keepFences: lua['keep-fences'],
} as const;
