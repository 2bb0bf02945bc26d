import { idle, now } from './clock.js';

const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 1000;

/**
 * Repeats a clean-up that nobody waits for until the store has answered it, no repetition can help, or `end` has come (on the monotonic
 * clock), when it is moot. It never rejects.
 *
 * @param explain tells of a failure, and says what it is.
 */
export async function retryUntilAnswered(
  work: () => Promise<unknown>,
  end: number,
  explain: (cause: unknown) => { readonly transient: boolean },
): Promise<void> {
  for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
    try {
      await work();
      return;
    } catch (cause) {
      if (!explain(cause).transient || now() >= end) return;
    }
    await idle(pause);
  }
}
