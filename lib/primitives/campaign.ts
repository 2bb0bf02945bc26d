import { onAbort, untilAborted } from '../core/abort.js';
import { after } from '../core/clock.js';
import type { WakeUps } from '../core/driver.js';
import type { Lease } from '../core/lease.js';
import type { ResolvedOptions } from '../core/options.js';
import type { Mutex } from './mutex.js';

/** Milliseconds to wait for the inbox: an election must not depend on it. */
const PATIENCE = 1000;

/**
 * Waits for the key, for months if need be, at a place of its own.
 *
 * Who queues without an inbox asks many times a second until it is served, which is too much for so long. So the inbox is opened first; where that
 * fails, the place is taken anew once it is open.
 *
 * @returns `undefined` when `stop` aborted.
 */
export async function campaign(
  mutex: Mutex,
  options: ResolvedOptions,
  stop: AbortSignal,
  warn: (message: string) => void,
): Promise<Lease | undefined> {
  const { wakeUps } = mutex;
  if (wakeUps && !wakeUps.isOpen) await untilAborted(opened(wakeUps, warn), stop);
  while (!stop.aborted) {
    const attempt = new AbortController();
    const again = (): void => attempt.abort();
    const forgetStop = onAbort(stop, again);
    const forgetOpening = wakeUps && !wakeUps.isOpen ? onOpening(wakeUps, again) : undefined;
    try {
      return await mutex.take({ ...options, signal: attempt.signal }, true);
    } catch (error) {
      if (!attempt.signal.aborted) throw error;
    } finally {
      forgetStop();
      forgetOpening?.();
    }
  }
  return undefined;
}

function opened(wakeUps: WakeUps, warn: (message: string) => void): Promise<void> {
  return new Promise((resolve) => {
    const timer = after(PATIENCE, resolve);
    void wakeUps.open(warn).then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

let listeners = 0;

/** All who listen are woken when it opens, as what was said before is lost. */
function onOpening(wakeUps: WakeUps, callback: () => void): () => void {
  return wakeUps.listen(`campaign:${++listeners}`, () => {
    if (wakeUps.isOpen) callback();
  });
}
