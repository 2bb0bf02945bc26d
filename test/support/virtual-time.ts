// Time passes as soon as there is nothing else to do: whoever waits a minute waits for no time at all, and by a clock that no busy machine disturbs.
// To be imported first, by a spec file that waits for nothing outside of the process.
import { AsyncResource } from 'node:async_hooks';
import { pause, useSkip } from './time.js';

/** Lets so many milliseconds pass. */
export const passTime = (milliseconds: number): Promise<void> => pause(milliseconds);

interface Timer {
  callAt: number;
}
interface FakeClock {
  now: number;
  readonly timers?: ReadonlyMap<number, Timer>;
  readonly timerHeap: { remove(timer: Timer): void; push(timer: Timer): void };
}

const realTurn = setImmediate;
const realTimeout = setTimeout;
jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'clearImmediate'] });
const fakeTimeout = setTimeout;
const { clock } = fakeTimeout as unknown as { clock: FakeClock };
// As a real timer, it runs in the call chain in which it was set.
const bound = (callback: () => void, delay?: number, ...args: []) => fakeTimeout(AsyncResource.bind(callback), delay, ...args);
globalThis.setTimeout = Object.assign(bound as unknown as typeof setTimeout, fakeTimeout);

useSkip((milliseconds) => {
  const now = clock.now + milliseconds;
  for (const timer of [...(clock.timers?.values() ?? [])]) {
    if (timer.callAt >= now) continue;
    clock.timerHeap.remove(timer);
    timer.callAt = now;
    clock.timerHeap.push(timer);
  }
  clock.now = now;
});

// What should come at once, and comes by the next look a minute later, takes no time here: so it is by this clock that a test must be done in time.
let longestTest = 8_000;
/** For the tests of a file in which the waiting itself is long. */
export const mayTake = (milliseconds: number): void => void (longestTest = milliseconds);
let start: number;
beforeEach(() => void (start = performance.now()));
afterEach(() => {
  const took = performance.now() - start;
  if (took > longestTest) throw new Error(`The test took ${took} ms of virtual time.`);
});

// A store that answers in later turns of the event loop is under way for so many.
let turns = 1;
/** For a file whose store takes several turns of the event loop for a request: no time passes meanwhile. */
export const afterTurns = (count: number): void => void (turns = count);
// One that something is due in counts anew: a request may have begun in the last one. But not for good, since a loop may wait for the time to pass.
const MOST = 20;
const isTurnDue = (): boolean => process.getActiveResourcesInfo().includes('Immediate');

let isOver = false;
void (async () => {
  while (!isOver) {
    for (let turn = 0, all = 0; turn < turns && !isOver; turn++, all++) {
      await new Promise<void>((resolve) => (jest.getTimerCount() > 0 ? realTurn(resolve) : realTimeout(resolve, 1)));
      if (turns > 1 && all < MOST * turns && isTurnDue()) turn = 0;
    }
    if (!isOver) jest.advanceTimersToNextTimer();
  }
})();
afterAll(() => {
  isOver = true;
  jest.useRealTimers();
});
