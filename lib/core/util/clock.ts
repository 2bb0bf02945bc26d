import { uptime } from 'node:os';
import { performance as machine } from 'node:perf_hooks';
import { onAbort } from './abort.js';
import { detached } from './detached.js';

export const HOUR = 3_600_000;
/** Node fires a timer with a longer delay at once. */
const LONGEST_DELAY = 2 ** 31 - 1;

/** Milliseconds. A shorter suspend of the machine is not noticed. */
const SHORTEST_SUSPEND = 40;
/** The part of the time by which two clocks of a machine may drift apart: as much as a time server corrects at most. */
const DRIFT = 0.0005;
/** Milliseconds. A reading that takes longer was interrupted, and is repeated. */
const LONGEST_READING = 5;
const MOST_READINGS = 10;

let suspended = 0;
let lastSuspend = { length: 0, end: -Infinity };
/** Milliseconds by which the clock since boot may be behind: hundredths of a second on Linux, whole seconds on macOS. */
let precision = 1000;
let sinceBoot = readSinceBoot();
let lookedAt = machine.now();
/** Milliseconds by which the wall clock was ahead of {@link now}. */
let sinceEpoch = wallClock() - performance.now();

/** Milliseconds on the monotonic clock, and those in which the machine was suspended, as far as {@link countSuspend} has noticed. Wall clocks jump. */
export function now(): number {
  return performance.now() + suspended;
}

/** Milliseconds on the monotonic clock alone. It is for waiters that count the lease of another process, which must not end too early: it is never ahead. */
export function awake(): number {
  return performance.now();
}

/**
 * The clock since boot goes on while the machine is suspended. What it has gone on by alone since the last look was a suspend. It is not compared with an
 * earlier look: on macOS and Windows the two clocks drift apart, and within hours that is more than a short suspend.
 */
export function countSuspend(): void {
  const reading = readSinceBoot();
  if (reading === undefined) return;
  const time = machine.now();
  const length = reading - (sinceBoot ?? reading);
  const shortest = precision + SHORTEST_SUSPEND + DRIFT * (time - lookedAt);
  sinceBoot = reading;
  lookedAt = time;
  if (length > shortest) {
    const counted = length + precision;
    suspended += counted;
    lastSuspend = { length: counted, end: now() };
  }
  sinceEpoch = wallClock() - now();
}

/** {@link now}, just after a suspend, too: it looks at the wall clock, which a suspend also moves, and once a second at the slow clock since boot. */
export function exactNow(): number {
  const time = now();
  if (Math.abs(wallClock() - time - sinceEpoch) <= SHORTEST_SUSPEND && machine.now() - lookedAt <= 1000) return time;
  countSuspend();
  return now();
}

/** How long the machine was suspended last, in milliseconds; 0: that was before this time. */
export function suspendedSince(time: number): number {
  return lastSuspend.end > time ? lastSuspend.length : 0;
}

/** Whether a suspend was noticed since a time of {@link awake}. */
export const sleptSince = (time: number): boolean => lastSuspend.end - suspended >= time;

/** How far the clock since boot is ahead of the monotonic one, in milliseconds. `undefined`: it cannot be read. Fake timers replace neither. */
function readSinceBoot(): number | undefined {
  try {
    for (let readings = 0; readings < MOST_READINGS; readings++) {
      const start = machine.now();
      const seconds = uptime();
      if (!Number.isInteger(seconds)) precision = 10;
      if (machine.now() - start <= LONGEST_READING) return seconds * 1000 - start;
    }
  } catch {
    // The process may not read it: a suspend is not noticed then.
  }
  return undefined;
}

/** A time of the monotonic clock, in milliseconds since 1970: for people, and to compare with a store's clock. No lock depends on it. */
export function dateOf(time: number): number {
  return Math.round(wallClock() - (now() - time));
}

/** It can be set to any time: it is for what people see, and its jumps are a reason to look at the clock since boot. */
function wallClock(): number {
  // eslint-disable-next-line no-restricted-properties -- the one place
  return Date.now();
}

/** Milliseconds for which a lease of `ttl` milliseconds is valid. The rest covers the drift between our clock and the store's. */
export function validity(ttl: number): number {
  return ttl - Math.max(2, ttl / 100);
}

/** `setTimeout` in whole milliseconds, never early, outside of every call chain. A delay of more than 24 days ends after 24 days. */
export function after(delay: number, callback: () => void): NodeJS.Timeout {
  return detached(() => setTimeout(callback, Math.min(Math.ceil(Math.max(delay, 0)), LONGEST_DELAY)));
}

/** A timer that can be set to an earlier time, and does not keep the process alive. One of them serves any number of times that are waited for. */
export class Alarm {
  /** When it rings, on the monotonic clock; `Infinity`: it is not set. */
  at = Infinity;
  private timer: NodeJS.Timeout | undefined;
  private clock = setTimeout;

  constructor(private readonly ring: () => unknown) {}

  /** It rings at this time, unless it rings earlier. `Infinity`: it stays as it is. */
  setBy(time: number): void {
    if (this.clock !== setTimeout) {
      // A test has replaced the clock, which does not know the timers of the other one.
      this.clock = setTimeout;
      this.timer = undefined;
    }
    if (time === Infinity || (this.timer && time >= this.at)) return;
    clearTimeout(this.timer);
    const current = now();
    this.at = Math.max(time, current);
    const timer = (this.timer = after(this.at - current, () => {
      if (this.timer !== timer) return;
      this.timer = undefined;
      this.ring();
      if (!this.timer) this.at = Infinity;
    }).unref());
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.at = Infinity;
  }
}

/** Resolves after `delay` milliseconds, or as soon as one of the signals aborts. @param keepsAlive whether the process stays for it. */
export function idle(delay: number, signals: readonly AbortSignal[] = [], keepsAlive = false): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      for (const each of forget) each();
      resolve();
    };
    const timer = after(delay, end);
    if (!keepsAlive) timer.unref();
    const forget = signals.map((signal) => onAbort(signal, end));
    if (signals.some(({ aborted }) => aborted)) end();
  });
}

/** The result of the work. @throws what `late` makes, if it has not settled within so many milliseconds: a client may never settle what it was asked. */
export async function inTime<T>(timeout: number, work: Promise<T>, late: () => Error): Promise<T> {
  if (!(await isSettledWithin(timeout, work))) throw late();
  return work;
}

/** Whether the work settles within so many milliseconds. */
export async function isSettledWithin(timeout: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const end = new Promise<false>((resolve) => (timer = after(timeout, () => resolve(false))));
  const settled = (): boolean => true;
  const isSettled = await Promise.race([work.then(settled, settled), end]);
  clearTimeout(timer);
  return isSettled;
}

/** Milliseconds as people read them: `812 ms`, `8.2 s`, `41 s`, `12 min`, `3 h`, `2 d`. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 9.95) return `${Number(seconds.toFixed(1))} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`;
}

/** Milliseconds for a new connection to a database, which may take longer than a request: one that is given up has cost the server as much, and is made again. */
export function connectTimeout(requestTimeout: number): number {
  return Math.max(3 * requestTimeout, 5_000);
}

/** Milliseconds after which an idle connection shows that it is alive: a firewall or a load balancer drops one that is silent for a minute or longer. */
export const KEEP_ALIVE = 10_000;
