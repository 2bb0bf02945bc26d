/** Messages between the server of the dashboard and its page. Times are milliseconds since 1970 by the clock of the server. */
import type { KeyKind, OwnerParts, ProcessReport } from '../core/model/key-report.js';

/** The version of these messages: a page of another one is loaded again. */
export const VERSION = 2;

/** A key is named by its store and itself, `redact`ed if the app says so. */
export interface RowName {
  readonly store: string;
  readonly key: string;
}

/** A row of the live table. */
export interface Row extends RowName {
  readonly kind: KeyKind | 'leader election';
  /** The first holder; `null`: nobody holds it. */
  readonly holder: Party | null;
  readonly holders: number;
  readonly waiters: number;
  /** Since when the first waiter waits. */
  readonly waitingSince: number | null;
  /** The processes of the waiters, some of them at least. */
  readonly waitingIn: readonly string[];
}

export interface Party extends OwnerParts {
  readonly owner: string;
  readonly label: string | null;
  readonly since: number | null;
  readonly token: number | null;
  /** Its process did not answer the last question. */
  readonly isSilent: boolean;
  /** When a key that was released, or is held by hand, becomes free; `null`: it is held. */
  readonly until: number | null;
  /** When its process said what it does; `null`: never. */
  readonly saidAt: number | null;
}

/** A process that holds a key or waits for one, `app@host:pid`. */
export interface ProcessState {
  readonly name: string;
  readonly isSilent: boolean;
  readonly holds: number;
  readonly waits: number;
}

/** Something that happened: what an operator looks for afterwards. Releases are only in the answer for a key. */
export interface Note extends RowName {
  readonly at: number;
  readonly event: 'lost' | 'timeout' | 'forced' | 'failed' | 'aborted' | 'released' | 'gave back' | 'held by hand';
  /** Equal events of a minute are one note, of the last of them. */
  readonly count: number;
  readonly firstAt: number;
  /** The operator. */
  readonly by: string | null;
  readonly label: string | null;
  /** `app@host:pid` */
  readonly process: string;
  readonly reason: string | null;
  /** How long it was held, in milliseconds. */
  readonly held: number | null;
}

/** The numbers on top. Times are milliseconds; `null`: not known before all stores were listed, or there was none. */
export interface Numbers {
  readonly held: number | null;
  readonly waiting: number | null;
  /** The highest of the last minute, of the 95th percentiles of each second. */
  readonly waitP95: number | null;
  /** In the last five minutes. */
  readonly lost: number;
  readonly timeouts: number;
}

/** A label, and how long its callers have waited in the last five minutes. */
export interface Costly {
  readonly label: string;
  readonly waited: number;
}

/** How much of a store is in the table. */
export interface Listing {
  /** `'cut'`: it has more keys than are listed. */
  readonly state: 'under way' | 'whole' | 'cut' | 'failed';
  /** Keys that were found. */
  readonly keys: number;
  /** False: its processes send no events, and it is listed again and again. */
  readonly hasEvents: boolean;
}

export interface Alert {
  readonly kind: 'deadlock' | 'lost' | 'silent' | 'store' | 'doctor';
  readonly text: string;
  /** The key to show. */
  readonly row?: RowName;
}

/** The events of the stream `events`. */
export interface Messages {
  /** The first one. */
  hello: {
    readonly version: typeof VERSION;
    readonly now: number;
    readonly stores: readonly string[];
    readonly me: { readonly by: string | null; readonly mayRelease: boolean };
  };
  /** Once a second at most, some hundred rows at a time. The first one replaces all that the page has. */
  delta: { readonly isFirst?: boolean; readonly put: readonly Row[]; readonly drop: readonly RowName[] };
  /** Each second: a page that gets none is not connected. */
  stats: {
    readonly numbers: Numbers;
    /** The labels with the most waiting time. */
    readonly costly: readonly Costly[];
    readonly processes: readonly ProcessState[];
    readonly alerts: readonly Alert[];
    /** Milliseconds of a request to each store; `null`: it does not answer. */
    readonly latency: Readonly<Record<string, number | null>>;
    readonly listings: Readonly<Record<string, Listing>>;
  };
  notes: readonly Note[];
  /** The last one: the process ends. The page connects again later, to it or to another one. */
  end: { readonly reason: string };
}

/** The answer of `key?store=&key=`. */
export interface KeyAnswer extends RowName {
  readonly kind: KeyKind;
  readonly at: number;
  readonly fencingToken: number | null;
  readonly permits: number | null;
  readonly count: number | null;
  readonly remaining: number | null;
  readonly holders: readonly (Party & { readonly remaining: number | null; readonly phase: 'held' | 'kept'; readonly isShared: boolean })[];
  readonly holderCount: number;
  readonly waiters: readonly WaiterAnswer[];
  readonly waiterCount: number;
  /** The last events of this key that the server has seen. */
  readonly notes: readonly Note[];
  /** This key, the key that its holder waits for, and so on. */
  readonly chain: readonly RowName[];
}

export interface WaiterAnswer extends Omit<Party, 'token' | 'saidAt' | 'until'> {
  readonly patienceLeft: ProcessReport['patienceLeft'];
  /** Keys that it holds while it waits. */
  readonly holding: readonly string[];
}

/** The answer of `find?store=&text=`: how many keys the store has found. They are in the next `delta`. */
export interface FindAnswer {
  readonly found: number;
  /** False: there may be more. */
  readonly isWhole: boolean;
}

/** The body of `POST release`. */
export interface ReleaseOrder {
  readonly store: string;
  /** At most 100. Each is released only if its owner and its token are still these. */
  readonly keys: readonly { readonly key: string; readonly owner: string; readonly token: number | null }[];
  /** 3 to 200 characters. */
  readonly reason: string;
  /** Milliseconds that the holder is given. */
  readonly grace: number;
  /** Milliseconds for which a key stays taken afterwards. */
  readonly keepFor: number;
}

/** The answer to it, in the order of the keys. */
export type ReleaseAnswer = readonly {
  readonly key: string;
  readonly outcome: 'gave back' | 'forced' | 'changed' | 'failed';
  /** Why it has failed. */
  readonly reason?: string;
  readonly holder: string | null;
}[];

/** The body of `POST hold`: nobody gets the key, which is free, for so long. The key is one without the namespace, as for `Locks.mutex`. */
export interface HoldOrder extends RowName {
  readonly for: number;
  readonly reason: string;
}

/** The answer to it. Not held: somebody else has the key. */
export interface HoldAnswer {
  readonly isHeld: boolean;
}
