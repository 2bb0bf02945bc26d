// Time stands still unless a test moves it. No timer fires but short pauses, which end at once. A turn of the event loop is as short as it can be:
// a model makes millions of them.
const START = 1_000;
/** Longest pause that ends at once, milliseconds. */
const PAUSE = 100;

const realTimeout = globalThis.setTimeout;
const realTurn = globalThis.setImmediate;
const turns: (() => void)[] = [];

export const clock = {
  /** Milliseconds of `performance.now()`. */
  time: START,
  reset(): void {
    clock.time = START;
    turns.length = 0;
  },
};

export function stopTheClock(): void {
  const timer = { unref: () => timer, ref: () => timer };
  const laterTurn = (callback: () => void): void => void turns.push(callback);
  const later = (callback: () => void, delay: number) => {
    if (delay <= PAUSE) laterTurn(callback);
    return timer;
  };
  beforeAll(() => {
    Object.defineProperty(performance, 'now', { configurable: true, value: () => clock.time });
    globalThis.setTimeout = later as unknown as typeof setTimeout;
    globalThis.setImmediate = laterTurn as unknown as typeof setImmediate;
  });
  afterAll(() => {
    Reflect.deleteProperty(performance, 'now');
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
