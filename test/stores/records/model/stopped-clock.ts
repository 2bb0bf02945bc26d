// Time stands still unless a test moves it. Short pauses end at once, longer timers when time passes. A turn of the event loop is as short as it can be:
// a model makes millions of them.
const START = 1_000;
/** Of the wall clock, and of the table's, when ours is 0. */
export const OFFSET = 1.7e12;
/** Longest pause that ends at once, milliseconds. */
const PAUSE = 500;

const realNow = Date.now;
const realTimeout = globalThis.setTimeout;
const realTurn = globalThis.setImmediate;
const turns: (() => void)[] = [];
const timers: { readonly endsAt: number; readonly callback: () => void }[] = [];

export const clock = {
  /** Milliseconds of `performance.now()`. */
  time: START,
  reset(): void {
    clock.time = START;
    turns.length = 0;
    timers.length = 0;
  },
  /** Time passes, and longer timers end. Those that were cleared end too: what they call must bear that. */
  pass(ms: number): void {
    clock.time += ms;
    for (const timer of timers.filter(({ endsAt }) => endsAt <= clock.time)) {
      timers.splice(timers.indexOf(timer), 1);
      turns.push(timer.callback);
    }
  },
};

export function stopTheClock(): void {
  const timer = { unref: () => timer, ref: () => timer };
  const laterTurn = (callback: () => void): void => void turns.push(callback);
  const later = (callback: () => void, delay: number) => {
    if (delay <= PAUSE) laterTurn(callback);
    else timers.push({ endsAt: clock.time + delay, callback });
    return timer;
  };
  beforeAll(() => {
    Object.defineProperty(performance, 'now', { configurable: true, value: () => clock.time });
    // No spy: it would store each call.
    Date.now = () => clock.time + OFFSET;
    globalThis.setTimeout = later as unknown as typeof setTimeout;
    globalThis.setImmediate = laterTurn as unknown as typeof setImmediate;
  });
  afterAll(() => {
    Reflect.deleteProperty(performance, 'now');
    Date.now = realNow;
    globalThis.setTimeout = realTimeout;
    globalThis.setImmediate = realTurn;
  });
}

/** When all promises have been followed up. */
const settled = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve));

/** Until nothing happens any more by itself. */
export async function quiet(): Promise<void> {
  await settled();
  while (turns.length > 0) {
    for (const turn of turns.splice(0)) turn();
    await settled();
  }
}

/** One of the event loop: somebody else may want something. */
export const realPause = (): Promise<void> => new Promise((resolve) => realTurn(resolve));
