import type { LockError } from '../model/errors.js';

/** One owner's business with one key at a store. */
export interface Tenancy {
  readonly key: string;
  /** See {@link createOwner}. */
  readonly owner: string;
}

/** How much of a key is asked for, where several may hold it at a time. */
export interface Share {
  /** Permits to take; `Infinity`: the whole key, alone. */
  readonly count: number;
  /** How many permits there are, from this request on; `Infinity`: as many as are asked for while nobody has the whole key. */
  readonly permits: number;
  /** Of those who queue, the ones of a lower rank go first, however late they come. */
  readonly rank: 0 | 1;
  /** An owner whose hold of the whole key does not stand in the way: the caller's own, which keeps a share of it. */
  readonly beside?: string;
}

export interface AcquireRequest extends Tenancy {
  /** Milliseconds after which the key frees itself unless it is renewed. */
  readonly ttl: number;
  /** How many fencing tokens to reserve. */
  readonly tokens: number;
  /** Join the queue of those who are served first come, first served, if the key is taken. */
  readonly queue: boolean;
  /** What the waiting call chain holds already: a queued waiter is stored with it, for whoever looks for a deadlock. */
  readonly holding?: readonly string[];
  /** Given to the drivers of keys that are shared, and to no other. */
  readonly share?: Share;
  /** An owner of this process that gives its lease up in the same step: to the head of the queue, or to this request. */
  readonly yields?: string;
  /** True once the caller has given up: the driver then sends nothing more for this request, so that the `leave` behind it is the last word. */
  readonly abandoned: () => boolean;
}

/** What became of the owner that a request yields: `'lost'`: the key was not its own any more. To a repeated request it says nothing. */
interface Yielded {
  readonly yielded?: 'released' | 'lost';
}

export type AcquireReply = Yielded &
  (
    | {
        readonly granted: true;
        /** First token of the reserved block; `null` where the store cannot promise that tokens grow. */
        readonly token: number | null;
      }
    | {
        readonly granted: false;
        /** Milliseconds that the holder's lease has left, as far as the store knows; negative: unknown. */
        readonly remaining: number;
        /** The holder's owner id; `null`: unknown. */
        readonly holder: string | null;
        /** How many queued waiters come first. */
        readonly ahead: number;
      }
  );

export interface RenewRequest extends Tenancy {
  readonly ttl: number;
}

/** An error: nothing is known of this lease, whatever the others were answered. */
export type RenewReply = 'renewed' | 'lost' | LockError;

export interface ExtendRequest extends RenewRequest {
  /** How many fencing tokens to reserve. */
  readonly tokens: number;
}

/** `'wanted'`: renewed, but others queue. Else the first token of a new block, as in {@link AcquireReply}. */
export type ExtendReply = 'lost' | 'wanted' | { readonly token: number | null };

export interface ReleaseRequest extends Tenancy {
  /** Keep the key taken for so many milliseconds yet. 0: free it now. */
  readonly keepFor: number;
}

/** How a store tells this process that a queued owner is offered its key, so that it need not ask again and again. */
export interface WakeUps {
  /** Whether it does so now: it may not yet have begun, be out of reach for a while, or not be allowed to. */
  readonly isOpen: boolean;
  /** Begins to listen, once however often it is called. Resolves when it does, or when it is clear that it cannot for now; never rejects. */
  open(warn: (message: string) => void): Promise<void>;
  /** A waiter was not woken for long, and looks by itself: are we still listened to? */
  check?(): void;
  /**
   * Calls back when the owner may have been offered its key, also before it is known to wait; or with the milliseconds after which it should ask,
   * because another waiter has been offered the key for so long. The returned function forgets it.
   */
  listen(owner: string, wake: (askIn?: number) => void): () => void;
}

/** What the store knows of an owner and a key; `remaining` as in {@link AcquireReply}. */
export interface CheckReply {
  readonly state: 'held' | 'queued' | 'taken' | 'free';
  readonly remaining: number;
  /** The owner id of whoever holds the key or is offered it, one of them where several do; `null`: nobody. */
  readonly holder: string | null;
  /** The last fencing token that was given or reserved, while the key is held; `null`: none is known. An offer has none of its own. */
  readonly token: number | null;
}

/**
 * The verbs that a store answers for one kind of lock. Each is one atomic step at the store, compares the owner, and is safe to
 * repeat. A rejection is a {@link StoreError} and means that the outcome is unknown; a driver rejects within its store's `requestTimeout`.
 */
export interface LeaseDriver {
  /** Whether several owners may hold a key at a time, each its {@link Share}. Then no caller waits for another one of its process. */
  readonly isShared?: boolean;
  /** How many leases one `renew` may be asked for. Default: any number. */
  readonly largestBatch?: number;
  /** Without it, waiters ask again and again. */
  readonly wakeUps?: WakeUps;
  /** Takes the key, or refreshes it where it is this owner's already (the reply to an earlier try was lost), or says who has it. */
  acquire(request: AcquireRequest): Promise<AcquireReply>;
  /** Pushes ends later; never brings one nearer, never revives a released key. Answers in the order of the batch. */
  renew(batch: readonly RenewRequest[]): Promise<readonly RenewReply[]>;
  /** Renews one of them, and reserves more tokens for it unless others queue. Without it, who has used them up asks for the key anew. */
  extend?(request: ExtendRequest): Promise<ExtendReply>;
  /** Gives the key back, to the head of the queue if there is one. `'lost'`: it was not this owner's. */
  release(request: ReleaseRequest): Promise<'released' | 'lost'>;
  /** Gives up an acquire: leaves the queue, and releases the key in case that it was granted. Sent behind the acquire that it abandons. */
  leave(tenancy: Tenancy): Promise<void>;
  /** Looks without touching. */
  check(tenancy: Tenancy): Promise<CheckReply>;
}
