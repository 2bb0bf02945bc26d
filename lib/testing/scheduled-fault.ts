/** The requests that faults can name. An `extend` counts as `renew`. */
export type FaultyRequest = 'acquire' | 'renew' | 'release';

/** When a fault of a schedule begins. */
export type FaultTime =
  | {
      /** Milliseconds after the first acquire at the store. */
      readonly at: number;
    }
  | {
      readonly on: FaultyRequest;
      /** At which of these requests, from 1. Default 1. */
      readonly nth?: number;
    };

/** What happens: the methods of {@link LockFaults} as data. */
export type FaultKind =
  /** A key, or `true`: all keys; with `on`, the one of the request. */
  | { readonly lose: string | true }
  | { readonly outage: number }
  | { readonly refuse: FaultyRequest }
  | { readonly dropReply: FaultyRequest }
  | { readonly slow: number }
  | { readonly timeOut: string }
  | { readonly stall: number }
  | { readonly shutDown: true };

/** A fault that happens by itself: `{ at: 200, outage: 2000 }`, `{ on: 'renew', nth: 3, lose: true }`. */
export type ScheduledFault = FaultTime & FaultKind;

const REQUESTS = ['acquire', 'renew', 'release'] as const;

/**
 * Any schedule of faults after which a correct service goes on by itself, made of any numbers. For property tests:
 * `fc.array(fc.nat()).map(anyFaults)`. Smaller and fewer numbers are fewer and earlier faults. There are no stalls and no shutdowns in it.
 */
export function anyFaults(numbers: readonly number[]): ScheduledFault[] {
  return numbers.map((each) => {
    const number = Math.abs(Math.trunc(each)) || 0;
    const on = REQUESTS[number % 3] as FaultyRequest;
    const rest = Math.floor(number / 12);
    const time: FaultTime = number % 2 === 0 ? { at: rest % 10_000 } : { on, nth: 1 + (rest % 5) };
    const kinds: FaultKind[] = [{ dropReply: on }, { slow: rest % 900 }, { outage: rest % 3_000 }, { lose: true }];
    return { ...time, ...(kinds[Math.floor(number / 3) % 4] as FaultKind) };
  });
}
