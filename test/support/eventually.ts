import { isVirtual, pause } from './time.js';

export interface EventuallyOptions {
  /** how long to keep trying, milliseconds; default: 5,000 on a virtual clock, and otherwise less than the time limit of a test, which is the only one */
  within?: number;
  /** pause between two tries, milliseconds */
  every?: number;
}

/**
 * Waits for a fact: tries `assertion` until it neither throws nor answers `false`, and returns its value.
 * @throws the last failure, saying how long was waited
 */
export async function eventually<T>(
  assertion: () => T | Promise<T>,
  { within = isVirtual() ? 5_000 : 100_000, every = 10 }: EventuallyOptions = {},
): Promise<T> {
  const failure = new Error(); // made here, so that its stack shows the caller
  Error.captureStackTrace(failure, eventually);
  const start = performance.now();
  const waited = () => performance.now() - start;
  let last: unknown;
  let tries = 0;
  do {
    tries++;
    try {
      const result = await answerWithin(assertion, within - waited());
      if (result !== false) return result;
      last = new Error('it answered false');
    } catch (error) {
      last = error;
    }
    await pause(every);
  } while (waited() < within);
  failure.message = `Not so after ${Math.round(waited())} ms (tries: ${tries}): ${last instanceof Error ? last.message : String(last)}`;
  failure.cause = last;
  failure.stack = `Error: ${failure.message}\n${failure.stack?.replace(/^Error\n?/, '') ?? ''}`;
  throw failure;
}

/** A try that hangs must not hang the test: it counts as failed when the time is up. */
async function answerWithin<T>(assertion: () => T | Promise<T>, ms: number): Promise<T> {
  const timer = new AbortController();
  const late = pause(Math.max(ms, 1), undefined, { signal: timer.signal }).then(() => {
    throw new Error('the last try never answered');
  });
  try {
    return await Promise.race([assertion(), late]);
  } finally {
    late.catch(() => undefined);
    timer.abort();
  }
}

/**
 * Shows an absence: `assertion` neither throws nor answers `false` for a while. It is the only sleep of a test on a real clock, and proves the more the longer
 * it is: nothing may depend on what happens meanwhile.
 *
 * @param during milliseconds; default: 200
 */
export async function staysTrue(assertion: () => unknown, during = 200): Promise<void> {
  const end = performance.now() + during;
  for (;;) {
    if ((await assertion()) === false)
      throw new Error(`It was not so any more with ${Math.max(0, Math.round(end - performance.now()))} ms to go.`);
    const left = end - performance.now();
    if (left <= 0) return;
    await pause(Math.min(left, 10));
  }
}
