import { setImmediate } from 'node:timers';

/** A timer of a fake clock. */
interface FakeTimer {
  readonly callAt: number;
}

/** The part of @sinonjs/fake-timers, which Jest, Vitest and Sinon install, that the kit uses. Times are milliseconds. */
export interface FakeClock {
  readonly now: number;
  /** A map since version 15, an object before that. */
  readonly timers?: ReadonlyMap<unknown, FakeTimer> | Readonly<Record<string, FakeTimer>>;
  /** Goes to the first timer and calls it. */
  next(): unknown;
  /** Goes on by so many milliseconds, and calls what is due on the way. */
  tick(ms: number): unknown;
  /** As {@link tick}, but every timer on the way is called once, and late. */
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
  if (!(performance.now as { clock?: FakeClock }).clock && !isFaked(clock)) {
    throw new Error(`${caller}: the fake timers leave "performance" real, so that leases would never end. ${HOW}`);
  }
  return clock;
}

/** When the first timer is due; `Infinity`: there is none. */
export function nextDue({ timers = {} }: FakeClock): number {
  let due = Infinity;
  // By its method: the map may come from another realm.
  const all = typeof timers.values === 'function' ? (timers as ReadonlyMap<unknown, FakeTimer>).values() : Object.values(timers);
  for (const { callAt } of all) due = Math.min(due, callAt);
  return due;
}

/** One turn of the real event loop: all promises that can settle have settled, and I/O that is there was read. */
export function settled(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** Whether `performance` moves with the clock. */
function isFaked(clock: FakeClock): boolean {
  const before = performance.now();
  clock.tick(0);
  return performance.now() === before;
}
