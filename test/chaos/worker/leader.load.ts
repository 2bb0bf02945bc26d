import type { Locks, Term } from '../../../lib/core.js';
import { Call } from './call.js';
import type { Context } from './context.js';
import { describe, outcomeOf } from './outcome.js';
import { writeSection } from './section.js';
import { question } from './terms.js';

const NAME = 'chief';
const FAIR_ENDS = ['aborted', 'shutdown', 'resigned'];

/** One candidacy: stands, leads until it has worked, resigns or is over its `maxHold`, or loses interest while it stands by. */
export async function callLeader(context: Context, locks: Locks): Promise<void> {
  const { random } = context;
  const options = {
    keyTimeout: random.pick([500, 1_000, 2_000]),
    retryInterval: random.pick([100, 500, 1_000]),
    maxHold: random.chance(0.2) ? random.int(50, 800) : undefined,
  };
  const terms = { ...options, waitTimeout: Infinity, fair: true, minHold: 0 };
  const stand = (): Call => new Call(context, question('leader', [`${NAME}-leader`], 'alone', terms, locks));
  const election = locks.leaderElection(NAME, options);
  const caller = new AbortController();
  let standing: Call | undefined = stand();
  let led: Call | undefined;
  let last: Term | undefined;
  let hasResigned = false;
  const lose = (): void => {
    standing?.aborting();
    caller.abort(new Error('the candidate has lost interest'));
  };
  const timer = random.chance(0.2) ? setTimeout(lose, random.int(0, 3_000)) : undefined;
  const resigns = random.chance(0.3);
  const length = random.int(5, 700);

  async function lead(term: Term): Promise<void> {
    led = standing!;
    last = term;
    standing = undefined;
    led.granted(term);
    for (const end = performance.now() + length; performance.now() < end && !term.signal.aborted;) {
      await writeSection(context, led, term, 20);
      // A section of a lease that has ended takes no time, and its signal comes in a moment.
      if (term.remaining() <= 0) await context.pause(1);
      if (!resigns || !random.chance(0.1)) continue;
      hasResigned = true;
      void election.resign();
    }
    led.releasing();
    // It stands again if its term was lost.
    if (!caller.signal.aborted && !hasResigned) standing = stand();
  }

  try {
    await election.run(lead, { signal: caller.signal });
    // Asked again, it gives its first answer.
    if (await last?.release()) led?.released(true);
    standing?.ended('resigned');
  } catch (error) {
    if (standing) standing.failed(error);
    else if (!FAIR_ENDS.includes(outcomeOf(error))) context.history.write({ e: 'trouble', what: 'logged', detail: describe(error) });
  } finally {
    clearTimeout(timer);
  }
  await context.pause(random.int(0, 500));
}
