import { NextAnswer } from '../../../lib/stores/quorum/quorum.next-answer.js';
import { now } from '../../../lib/core/util/clock.js';
import { pause } from '../../support/time.js';

let nextAnswer: NextAnswer;
beforeEach(() => {
  nextAnswer = new NextAnswer();
});
afterEach(() => nextAnswer.close());

function waiting(ends: readonly number[]): (boolean | undefined)[] {
  const outcomes: (boolean | undefined)[] = ends.map(() => undefined);
  for (const [index, end] of ends.entries()) void nextAnswer.wait(`owner ${index}`, end).then((outcome) => (outcomes[index] = outcome));
  return outcomes;
}

it('lets the one that waits longest try in each second, and with each answer', async () => {
  const outcomes = waiting([1, 2, 3].map(() => now() + 60_000));
  await pause(500);
  expect(outcomes).toEqual([undefined, undefined, undefined]);
  await pause(1_000);
  expect(outcomes).toEqual([true, undefined, undefined]);
  nextAnswer.came();
  await pause(0);
  expect(outcomes).toEqual([true, true, undefined]);
  nextAnswer.came();
  await pause(0);
  expect(outcomes).toEqual([true, true, true]);
});

it('lets nobody try for whom all has expired, or who has a later request', async () => {
  const outcomes = waiting([now() + 300, now(), now() + 60_000, now() + 60_000]);
  nextAnswer.cancel('owner 2');
  await pause(1_500);
  expect(outcomes).toEqual([false, false, false, true]);
});

it('keeps the last thousand, until it is closed', async () => {
  const outcomes = waiting(Array.from({ length: 1_002 }, () => now() + 60_000));
  await pause(0);
  expect(outcomes.indexOf(undefined)).toBe(2);
  expect(outcomes.slice(0, 2)).toEqual([false, false]);
  nextAnswer.close();
  await pause(0);
  expect(outcomes).toEqual(Array(1_002).fill(false));
  expect(await nextAnswer.wait('owner', now() + 60_000)).toBe(false);
});
