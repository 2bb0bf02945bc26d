import { pollDelay, turnDelay } from '../../lib/core/waiting/backoff.js';
import { patienceOf } from '../../lib/core/waiting/caller.js';
import { entryAfter } from '../../lib/core/waiting/contender.js';
import { lastAnswer } from '../../lib/core/waiting/waiter.js';

const least = () => 0;
const most = () => 1;
const half = () => 0.5;

describe('the wait timeout', () => {
  const options = { retryCount: 3, retryInterval: 500, waitTimeout: undefined };

  it.each([
    [1, 0, 0],
    [2, 500, 1_000],
    [3, 1_000, 2_000],
    [0, Infinity, Infinity],
  ])('of %d tries lies between %d and %d ms with a retryInterval of 500', (retryCount, shortest, longest) => {
    expect(patienceOf({ ...options, retryCount }, least)).toBe(shortest);
    expect(patienceOf({ ...options, retryCount }, most)).toBe(longest);
  });

  it('draws each interval by itself', () => {
    const draws = [0, 1, 0.5];
    const patience = patienceOf({ ...options, retryCount: 4, retryInterval: 100 }, () => draws.shift() ?? NaN);
    expect(patience).toBe(100 + 200 + 150);
  });

  it.each([0, 1, 700, Infinity])('is a waitTimeout of %d ms whatever the tries', (waitTimeout) => {
    for (const retryCount of [0, 1, 3]) expect(patienceOf({ ...options, retryCount, waitTimeout })).toBe(waitTimeout);
  });

  it('of very many tries is known without a draw for each', () => {
    const random = jest.fn(half);
    expect(patienceOf({ retryCount: 1e9 + 1, retryInterval: 2, waitTimeout: undefined }, random)).toBe(3e9);
    expect(random.mock.calls.length).toBeLessThanOrEqual(1_000);
  });
});

describe('the pause before a waiter asks again', () => {
  it('grows with each try, up to one to two retryIntervals', () => {
    const pauses = Array.from({ length: 12 }, (_, index) => pollDelay(index + 1, 500, -1, least));
    expect(pauses).toEqual([10, 20, 40, 80, 160, 320, 500, 500, 500, 500, 500, 500]);
    expect(pollDelay(100, 500, -1, most)).toBe(1_000);
  });

  it('is never longer than two retryIntervals, however short or late', () => {
    for (const retryInterval of [1, 3, 10, 500, 60_000]) {
      for (const attempt of [1, 2, 10, 1_000, 1e9]) {
        expect(pollDelay(attempt, retryInterval, -1, most)).toBeLessThanOrEqual(2 * retryInterval);
        expect(pollDelay(attempt, retryInterval, -1, least)).toBeGreaterThan(0);
      }
    }
  });

  it('ends soon after the lease of a holder that may be dead, unless the next try is earlier', () => {
    expect(pollDelay(20, 60_000, 300, least)).toBe(301);
    expect(pollDelay(20, 60_000, 300, half)).toBeLessThanOrEqual(30_301);
    expect(pollDelay(1, 500, 0, least)).toBe(1);
    expect(pollDelay(1, 500, 60_000, half)).toBe(15);
  });
});

describe('the pause before a queued waiter asks whether it is the first', () => {
  it('is short near the head: a queue moves no faster than its waiters find out', () => {
    expect(turnDelay(0, 1, 60_000)).toBeLessThanOrEqual(20);
    for (const attempt of [1, 2, 10, 1e9]) expect(turnDelay(0, attempt, 60_000)).toBeLessThanOrEqual(100);
    for (const ahead of [1, 2, 3]) expect(turnDelay(ahead, 1e9, 60_000)).toBeLessThanOrEqual(50 * (1 + ahead));
  });

  it('is 3 to 10 ms at the head for 100 ms after the key was passed on', () => {
    expect([least, half, most].map((random) => turnDelay(0, 9, 60_000, 99, random))).toEqual([3, 6.5, 10]);
    expect(turnDelay(1, 9, 60_000, 0, most)).toBe(20);
    expect(turnDelay(0, 9, 60_000, 100, least)).toBe(50);
  });

  it('finds an offer of a short lease before it ends', () => {
    for (const ahead of [0, 1, 50]) expect(turnDelay(ahead, 9, 60)).toBeLessThanOrEqual(30);
    expect(turnDelay(0, 9, 10)).toBe(10);
  });

  it('is longer further behind, and with each try, but shorter than an offer lasts', () => {
    const positions: [number, number][] = [[0, 1], [1, 1], [2, 1], [2, 2], [2, 9], [1e6, 1e6]]; // prettier-ignore
    const pauses = positions.map(([ahead, attempt]) => turnDelay(ahead, attempt, 60_000));
    expect(pauses).toEqual([...pauses].sort((a, b) => a - b));
    expect(pauses.at(-1)).toBeLessThan(1_000);
  });
});

it.each([
  ['fresh answer', 4_001, 0],
  ['fresh answer', 4_500, 999],
  ['old answer', 4_000, 0],
  ['old answer', -Infinity, 999],
  ['none since the outage began', undefined, 0],
  ['none since the outage began', 4_500, 1_000],
])('with a requestTimeout of 1,000 ms there is at 5,000 ms a %s: answered at %p, a request under way for %d ms', (answer, at, silence) => {
  expect(lastAnswer(at, silence, 5_000, 1_000)).toBe(answer);
});

it.each<[string, boolean, boolean, string[]]>([
  ['that queues', true, true, ['woken', 'woken', 'woken', 'woken']],
  ['that queues while the inbox is closed', true, false, ['silent', 'silent', 'silent', 'woken']],
  ['that does not queue', false, true, ['perhaps', 'perhaps', 'silent', 'woken']],
])('the entry of a contender after a request %s', (_, queues, isOpen, entries) => {
  const before = ['none', 'perhaps', 'silent', 'woken'] as const;
  expect(before.map((entry) => entryAfter(entry, queues, isOpen))).toEqual(entries);
});
