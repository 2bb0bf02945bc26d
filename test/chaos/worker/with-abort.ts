import type { AcquireOptions } from '../../../lib/core.js';
import type { Call } from './call.js';
import type { Context } from './context.js';
import type { Terms } from './terms.js';

/** Runs a call with options that may have a signal which aborts after a while, and notes how it failed. */
export async function withAbort(
  context: Context,
  call: Call,
  terms: Terms,
  run: (options: AcquireOptions) => Promise<void>,
): Promise<void> {
  const { random } = context;
  const caller = new AbortController();
  const abort = (): void => {
    call.aborting();
    caller.abort(new Error('the caller has lost interest'));
  };
  const timer = random.chance(0.1) ? setTimeout(abort, random.int(0, 400)) : undefined;
  try {
    await run(timer ? { ...terms, signal: caller.signal } : terms);
  } catch (error) {
    call.failed(error);
  } finally {
    clearTimeout(timer);
  }
}
