import type { Locks } from '../locks.js';

/** Milliseconds. A call that waits indefinitely in the app ends then in a test, with what it waited for. */
const LONGEST_WAIT = 5_000;

/** No call of these locks waits indefinitely. Candidates of an election do: nobody waits for them. */
export function limitWaits(locks: Locks): void {
  // By its one place in the engine: options come from decorators, defaults and calls.
  const queues = locks['engine'].queues;
  const acquire = queues.acquire.bind(queues);
  queues.acquire = (driver, key, id, places, call) => {
    const isLimited = call.patience < Infinity || call.options.isStandby;
    return acquire(driver, key, id, places, isLimited ? call : { ...call, patience: LONGEST_WAIT });
  };
}
