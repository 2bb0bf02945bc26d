export interface EventuallyOptions {
  /** How long to keep trying, milliseconds. Default: less than the time limit of a test, which is the only one. */
  within?: number;
  /** Pause between two tries, milliseconds. */
  every?: number;
}

/**
 * Waits for a fact: tries `assertion` until it neither throws nor answers `false`, and returns its value.
 *
 * @throws the last failure, saying how long was waited.
 */
export async function eventually<T>(assertion: () => T | Promise<T>, { within = 100_000, every = 10 }: EventuallyOptions = {}): Promise<T> {
  const failure = new Error(); // made here, so that its stack shows the caller
  Error.captureStackTrace(failure, eventually);
  const start = performance.now();
  const waited = (): number => performance.now() - start;
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
    await new Promise((resolve) => setTimeout(resolve, every));
  } while (waited() < within);
  failure.message = `Not so after ${Math.round(waited())} ms (tries: ${tries}): ${last instanceof Error ? last.message : String(last)}`;
  failure.cause = last;
  failure.stack = `Error: ${failure.message}\n${failure.stack?.replace(/^Error\n?/, '') ?? ''}`;
  throw failure;
}

/** A try that hangs must not hang the test: it counts as failed when the time is up. */
async function answerWithin<T>(assertion: () => T | Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the last try never answered')), Math.max(ms, 1));
  });
  try {
    return await Promise.race([assertion(), late]);
  } finally {
    clearTimeout(timer);
  }
}
