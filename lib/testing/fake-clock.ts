import { setImmediate } from 'node:timers';

type FakeTimer = { readonly callAt: number };

/** The part of @sinonjs/fake-timers, which Jest, Vitest and Sinon install, that the kit uses. Times are milliseconds. */
export interface FakeClock {
  readonly now: number;
  readonly performance: { now(): number };
  /** A map since version 15, an object before that. */
  readonly timers?: ReadonlyMap<unknown, FakeTimer> | Readonly<Record<string, FakeTimer>>;
  /** Goes to the first timer and calls it. */
  next(): unknown;
  /** Goes on by so many milliseconds, and calls what is due on the way. */
  tick(ms: number): unknown;
  /** Like {@link tick}, but every timer on the way is called once, and late. */
  jump(ms: number): unknown;
}

const HOW =
  'In Jest: jest.useFakeTimers(fakeTimers.jest); in Vitest: vi.useFakeTimers(fakeTimers.vitest); elsewhere: install @sinonjs/fake-timers, performance included.';

/** The fake clock that is installed now; `undefined`: time is real. */
export function fakeClock(): FakeClock | undefined {
  return (setTimeout as { clock?: FakeClock }).clock;
}

/** @throws {Error} that says how to install one, if there is none or if it leaves `performance` real. */
export function requireFakeClock(caller: string): FakeClock {
  const clock = fakeClock();
  if (!clock) throw new Error(`${caller} needs fake timers. ${HOW}`);
  // The library reads performance.now(). Where that stays real, leases never age.
  if (performance.now() !== clock.performance.now()) {
    throw new Error(`${caller}: the fake timers leave "performance" real, so that leases would never end. ${HOW}`);
  }
  return clock;
}

/** When the first timer is due; `Infinity`: there is none. */
export function nextDue({ timers = {} }: FakeClock): number {
  let due = Infinity;
  // By its method: the map may come from another realm.
  const all = typeof timers.values === 'function' ? (timers as ReadonlyMap<unknown, FakeTimer>).values() : Object.values(timers);
  for (const { callAt } of all as Iterable<FakeTimer>) due = Math.min(due, callAt);
  return due;
}

const { nextTick } = process as { nextTick: (this: void, callback: () => void) => void };
/** The real one, unless a configuration of the runner has faked it before this file was loaded. */
const soon: (this: void, callback: () => void) => unknown = 'clock' in nextTick ? setImmediate : nextTick;

/**
 * One iteration of the real event loop: all promises that can settle have settled, also those that a `setImmediate` resolves, and I/O that is there was read.
 */
export function settled(): Promise<void> {
  // First all microtasks, so that this is behind what they have queued.
  return new Promise((resolve) => void soon(() => void setImmediate(resolve)));
}
