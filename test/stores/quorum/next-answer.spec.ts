import { NextAnswer } from '../../../lib/stores/quorum/quorum.next-answer.js';
import { now } from '../../../lib/core/util/clock.js';
import { pause } from '../../support/time.js';

let nextAnswer: NextAnswer;
beforeEach(() => {
  nextAnswer = new NextAnswer();
});
afterEach(() => nextAnswer.all(false));

function outcomesOf(waits: readonly Promise<boolean>[]): (boolean | undefined)[] {
  const outcomes: (boolean | undefined)[] = waits.map(() => undefined);
  for (const [index, wait] of waits.entries()) void wait.then((outcome) => (outcomes[index] = outcome));
  return outcomes;
}

it('lets one try in each second, the oldest first, and all of them with an answer', async () => {
  const outcomes = outcomesOf([1, 2, 3].map(() => nextAnswer.wait(now() + 60_000)));
  await pause(500);
  expect(outcomes).toEqual([undefined, undefined, undefined]);
  await pause(1_000);
  expect(outcomes).toEqual([true, undefined, undefined]);
  nextAnswer.all(true);
  await pause(0);
  expect(outcomes).toEqual([true, true, true]);
});

it('lets nobody try for whom all has expired', async () => {
  const outcomes = outcomesOf([now() + 300, now() + 60_000].map((end) => nextAnswer.wait(end)));
  await pause(1_500);
  expect(outcomes).toEqual([false, true]);
});

it('keeps the last thousand', async () => {
  const outcomes = outcomesOf(Array.from({ length: 1_002 }, () => nextAnswer.wait(now() + 60_000)));
  await pause(0);
  expect(outcomes.indexOf(undefined)).toBe(2);
  expect(outcomes.slice(0, 2)).toEqual([false, false]);
  nextAnswer.all(true);
  await pause(0);
  expect(outcomes.slice(2)).toEqual(Array(1_000).fill(true));
});
