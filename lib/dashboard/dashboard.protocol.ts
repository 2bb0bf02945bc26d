/** Messages between the server of the dashboard and its page. Times are milliseconds since 1970 by the clock of the server. */
import type { KeyEvent, KeyKind, OwnerParts, ProcessReport } from '../core/model/key-report.js';

/** The version of these messages: a page of another one is loaded again. */
export const VERSION = 3;

/** A key is named by its store and itself, `redact`ed if the app says so. */
export interface RowName {
  readonly store: string;
  readonly key: string;
}

export interface Party extends OwnerParts {
  readonly owner: string;
  readonly label: string | null;
  readonly since: number | null;
  readonly token: number | null;
  /** `'kept'`: it was released, and its `minHold` is not over, or it is held by hand. */
  readonly phase: 'held' | 'kept' | 'handed over';
  /** When its lease ends, or it is free; `null`: never, or unknown. */
  readonly endsAt: number | null;
  /** Its process did not answer the last question. */
  readonly isSilent: boolean;
  /** When its process said what it does; `null`: never. */
  readonly saidAt: number | null;
}

/** A key that is held, kept or waited for. */
export interface Row extends RowName {
  readonly kind: KeyKind | 'leader election';
  /** The permits of a semaphore. */
  readonly permits: number | null;
  /** The first holder; `null`: nobody holds it. */
  readonly holder: Party | null;
  readonly holders: number;
  readonly waiters: number;
  /** Since when the first caller waits. */
  readonly waitingSince: number | null;
}

/** Something that happened: what an operator looks for afterwards. Equal events of a minute are one note. */
export interface Note extends RowName {
  readonly event: KeyEvent['event'] | 'ran out' | 'gave back' | 'held by hand' | 'outage';
  /** The time of the last of them; and of the first one. */
  readonly at: number;
  readonly firstAt: number;
  readonly count: number;
  /** The operator. */
  readonly by: string | null;
  readonly label: string | null;
  /** `app@host:pid` */
  readonly process: string;
  readonly reason: string | null;
  /** For how long it was held or waited for, or the store was away, in milliseconds. */
  readonly lasted: number | null;
}

export interface PageAlarm {
  readonly kind: 'deadlock' | 'outage' | 'wait' | 'lost' | 'store';
  readonly text: string;
  /** Since when it is so, where that is known to the second. */
  readonly since?: number;
  /** The key to show. */
  readonly row?: RowName;
}

export interface StoreState {
  readonly name: string;
  /** The time of its rows; `null`: it has not answered yet. */
  readonly at: number | null;
  readonly isAway: boolean;
  /** Milliseconds of a request. */
  readonly latency: number | null;
  /** Keys that were found. */
  readonly keys: number;
  /** False: it has more keys than that. */
  readonly isWhole: boolean;
}

/** How many hold and wait now, and how often things happened in the last five minutes. */
export interface Numbers {
  readonly held: number;
  readonly waiting: number;
  /** Milliseconds. */
  readonly longestWait: number | null;
  readonly lost: number;
  readonly timeouts: number;
  readonly failed: number;
}

/** The answer of `state?store=&q=`: all that the page draws. */
export interface PageState {
  readonly version: typeof VERSION;
  readonly now: number;
  readonly me: { readonly by: string | null; readonly mayRelease: boolean };
  readonly stores: readonly StoreState[];
  readonly numbers: Numbers;
  readonly alarms: readonly PageAlarm[];
  readonly processes: { readonly known: number; readonly silent: readonly string[] };
  /** At most 500: those with waiters first, then the oldest. */
  readonly rows: readonly Row[];
  /** How many there are. */
  readonly found: number;
  /** The last ones first. */
  readonly notes: readonly Note[];
  /** The advice of the doctor. */
  readonly advice: readonly string[];
}

/** The answer of `key?store=&key=`. */
export interface KeyAnswer extends RowName {
  readonly kind: KeyKind;
  readonly at: number;
  readonly fencingToken: number | null;
  readonly permits: number | null;
  readonly count: number | null;
  readonly endsAt: number | null;
  readonly holders: readonly (Party & { readonly isShared: boolean })[];
  readonly holderCount: number;
  readonly waiters: readonly WaiterAnswer[];
  readonly waiterCount: number;
  /** The last events of this key. */
  readonly notes: readonly Note[];
  /** This key, the key that its holder waits for, and so on. */
  readonly chain: readonly RowName[];
}

/** Equal callers of a process: their process, what they do, and what they hold. */
export interface WaiterAnswer extends Pick<Party, 'app' | 'host' | 'pid' | 'owner' | 'label' | 'isSilent'> {
  readonly count: number;
  /** The start of the longest wait. */
  readonly since: number;
  readonly patienceLeft: ProcessReport['patienceLeft'];
  /** Keys that they hold while they wait. */
  readonly holding: readonly string[];
}

/** The body of `POST release`. The key is released only if its owner and its token are still these. */
export interface ReleaseOrder extends RowName {
  readonly owner: string;
  readonly token: number | null;
  /** 3 to 200 characters. */
  readonly reason: string;
  /** Milliseconds that the holder is given. */
  readonly grace: number;
  /** Milliseconds for which the key stays taken afterwards. */
  readonly keepFor: number;
}

export interface ReleaseAnswer {
  readonly outcome: 'gave back' | 'forced' | 'changed';
  /** The present owner, if it has changed. */
  readonly holder: string | null;
}

/** The body of `POST hold`: nobody gets the key, which is free, for so long. The key is one without the namespace, as for `Locks.mutex`. */
export interface HoldOrder extends RowName {
  readonly for: number;
  readonly reason: string;
}

/** The answer to it. Not held: somebody else has the key. */
export interface HoldAnswer {
  readonly isHeld: boolean;
}
