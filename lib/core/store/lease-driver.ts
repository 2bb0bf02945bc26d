/** An owner and a key at a store. */
export interface Tenancy {
  readonly key: string;
  /** The random id of one holding, `app@host:pid:uuid`. */
  readonly owner: string;
}

/** The share that is asked for of a key that several may hold at the same time. */
export interface Share {
  /** Permits to take; `Infinity`: the whole key, alone. */
  readonly count: number;
  /** How many permits there are, from this request on; `Infinity`: no limit, unless a holder has the whole key. */
  readonly permits: number;
  /** In the queue, rank 0 always goes before rank 1. */
  readonly rank: 0 | 1;
  /** An owner that may hold the whole key at the same time: the caller's own write lock, under which it reads. */
  readonly beside?: string;
}

/** A request for a key, or for a share of one. */
export interface AcquireRequest extends Tenancy {
  /** Milliseconds after which the key is free, unless it is renewed. */
  readonly ttl: number;
  /** How many fencing tokens to reserve. */
  readonly tokens: number;
  /** The first of them is no smaller than this. A quorum raises it to the largest token of its members. */
  readonly floor?: number;
  /** Join the queue if the key is taken. The queue is served in the order of arrival. */
  readonly queue: boolean;
  /** Keys that the waiting call chain holds already, each as `<uuid of the owner> <key>`. It is stored with its queue entry, to find deadlocks. */
  readonly holding?: readonly string[];
  /** Given to drivers of shared keys only. */
  readonly share?: Share;
  /** An owner of this process that gives the key up: to the head of the queue, or to this request. One step, or a release and then an acquire. */
  readonly yields?: string;
}

/** The reply to an {@link AcquireRequest}: granted, or who has the key and for how long. */
export type AcquireReply = {
  /** Whether the owner that the request yields had the key until then. The answer to a repeated request is not conclusive. */
  readonly yielded?: 'released' | 'lost';
} & (
  | {
      readonly granted: true;
      /** First token of the reserved block; `null` where the store cannot promise that tokens grow. */
      readonly token: number | null;
    }
  | {
      readonly granted: false;
      /** Milliseconds until the holder's lease ends, if it is not renewed; negative: unknown. */
      readonly remaining: number;
      /** The holder's owner id, behind `kept:` if it has released the key and its minHold is not over; `null`: unknown. */
      readonly holder: string | null;
      /** How many queued waiters come first. */
      readonly ahead: number;
    }
);

/** A request to move the end of a lease later. */
export interface RenewRequest extends Tenancy {
  readonly ttl: number;
  /** Whether the key must stay taken for so long even if the process of the owner ends. */
  readonly outlives?: boolean;
}

/** A renewal that also reserves fencing tokens for the next callers of this process. */
export interface ExtendRequest extends RenewRequest {
  /** How many fencing tokens to reserve. */
  readonly tokens: number;
}

/** `'wanted'`: renewed, but others queue. Else the first token of a new block, as in {@link AcquireReply}. */
export type ExtendReply = 'lost' | 'wanted' | { readonly token: number | null };

/** A request to take a key over from its owner. */
export interface AdoptRequest extends ExtendRequest {
  /** The owner that hands it over. */
  readonly from: string;
}

/** `'lost'`: neither of them has the key. Else the first token of a new block, as in {@link AcquireReply}. */
export type AdoptReply = Exclude<ExtendReply, 'wanted'>;

/** A request to release a key. */
export interface ReleaseRequest extends Tenancy {
  /** Milliseconds for which the key stays taken; 0: it is free at once. */
  readonly keepFor: number;
}

/** Messages by which a store wakes a queued owner that it offers the key. */
export interface WakeUps {
  /** Whether messages arrive now. They may not have begun, be interrupted, or not be permitted. */
  readonly isOpen: boolean;
  /** How waiters learn of a release, also before the first one waits: `'interrupted'`: they poll, but should be woken. Default `'woken'`. */
  readonly state?: 'woken' | 'polling' | 'interrupted' | undefined;
  /**
   * Begins to listen; repeated calls do nothing. Resolves when it listens, or when it is known that it cannot for now. Never rejects.
   *
   * @param warn is called with the reason why it cannot.
   * @param debug is called when a message was dropped because it is not valid. It does not get the text, which any client may have written.
   */
  open(warn: (message: string) => void, debug?: (message: string) => void): Promise<void>;
  /** A waiter had to ask because no message came for long. Verify that messages still arrive. */
  check?(): void;
  /**
   * Calls back when the owner may have been offered its key, even before it has a queue entry. Or with the milliseconds after which it should ask,
   * because the key is offered to another waiter until then. The returned function stops listening.
   */
  listen(owner: string, wake: (askIn?: number) => void): () => void;
}

/** The state of a key for an owner; `remaining` as in {@link AcquireReply}. */
export interface CheckReply {
  readonly state: 'held' | 'queued' | 'taken' | 'free';
  readonly remaining: number;
  /** The owner that holds the key or is offered it, one of them if there are several, as in {@link AcquireReply}; `null`: none. */
  readonly holder: string | null;
  /** The last fencing token that was reserved, while the key is held; `null`: unknown. */
  readonly token: number | null;
}

/**
 * The verbs that a store answers for one kind of lock. Each is one atomic step at the store, compares the owner, and is safe to repeat.
 *
 * A rejection is a {@link StoreError}: the outcome is unknown, unless it `isUnsent`. A driver answers or rejects within its store's
 * `requestTimeout`, and sends nothing after that. Requests may arrive in any order: nothing is asked for an owner while its acquire is under way.
 */
export interface LeaseDriver {
  /** The driver that this one wraps to measure it. Both are the same for locks: a call chain that holds a key by one holds it by the other. */
  readonly origin?: LeaseDriver;
  /** Whether several owners may hold a key at a time, each its {@link Share}. */
  readonly isShared?: boolean;
  /** Milliseconds for which the store keeps a queue entry after the last request for it. Waiters ask at least twice as often. */
  readonly queueEntryLifetime: number;
  /** Without it, queued waiters ask from time to time: often at the head, less often behind. */
  readonly wakeUps?: WakeUps;
  /** When a token was reserved, by the store's clock. Only for tokens that are times. */
  timeOf?(token: number): Date;
  /** Takes the key, or refreshes it if this owner has it (the reply to an earlier try was lost), or answers who has it. */
  acquire(request: AcquireRequest): Promise<AcquireReply>;
  /** Moves ends later, never earlier; never revives a released key. Each renewal has its own reply, so that a slow node delays only its own leases. */
  renew(batch: readonly RenewRequest[]): readonly Promise<'renewed' | 'lost'>[];
  /** Renews, and reserves more tokens unless others queue. Without it, a process that has used its tokens up acquires the key again. */
  extend?(request: ExtendRequest): Promise<ExtendReply>;
  /** Changes the owner, if `from` has the key, for a whole `ttl`; refreshes it if this owner has it already. Without it, no lease can be handed over. */
  adopt?(request: AdoptRequest): Promise<AdoptReply>;
  /** Releases the key, to the head of the queue if there is one. `'lost'`: it was not this owner's. */
  release(request: ReleaseRequest): Promise<'released' | 'lost'>;
  /** Gives up an acquire that has settled: leaves the queue, and releases the key if it was granted. */
  leave(tenancy: Tenancy): Promise<void>;
  /** Reads the state. Changes nothing. */
  check(tenancy: Tenancy): Promise<CheckReply>;
}

/** Whether both send their requests to the same place. */
export function isSameDriver(a: LeaseDriver, b: LeaseDriver): boolean {
  return a === b || (a.origin ?? a) === (b.origin ?? b);
}

/** The properties of a driver that are no requests, for a driver that passes requests on to it. */
export function traitsOf(driver: LeaseDriver): Omit<LeaseDriver, 'acquire' | 'renew' | 'extend' | 'adopt' | 'release' | 'leave' | 'check'> {
  const { origin = driver, isShared, queueEntryLifetime, wakeUps } = driver;
  const timeOf = driver.timeOf && ((token: number) => driver.timeOf!(token));
  return { origin, isShared, queueEntryLifetime, wakeUps, timeOf };
}
