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
  /** How many permits there are, from this request on; `Infinity`: any number, while nobody has the whole key. */
  readonly permits: number;
  /** In the queue, rank 0 goes before rank 1, however late it comes. */
  readonly rank: 0 | 1;
  /** An owner whose hold of the whole key is not in the way: the caller's own write lock, under which it reads. */
  readonly beside?: string;
}

export interface AcquireRequest extends Tenancy {
  /** Milliseconds after which the key frees itself unless it is renewed. */
  readonly ttl: number;
  /** How many fencing tokens to reserve. */
  readonly tokens: number;
  /** The first of them is no smaller than this. A quorum raises it to the largest token of its members. */
  readonly floor?: number;
  /** Join the queue if the key is taken. The queue is served in the order of arrival. */
  readonly queue: boolean;
  /** The keys that the waiting call chain holds already. They are stored with its place, to find deadlocks. */
  readonly holding?: readonly string[];
  /** Given to drivers of shared keys only. */
  readonly share?: Share;
  /** An owner of this process that gives the key up: to the head of the queue, or to this request. One step, or a release and then an acquire. */
  readonly yields?: string;
}

/** Whether an owner that a request yields still had the key. After a repeated request it says nothing. */
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
        /** Milliseconds that the holder's lease has left; negative: unknown. */
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

export interface ExtendRequest extends RenewRequest {
  /** How many fencing tokens to reserve. */
  readonly tokens: number;
}

/** `'wanted'`: renewed, but others queue. Else the first token of a new block, as in {@link AcquireReply}. */
export type ExtendReply = 'lost' | 'wanted' | { readonly token: number | null };

export interface ReleaseRequest extends Tenancy {
  /** Keep the key taken for so many milliseconds more. 0: free it now. */
  readonly keepFor: number;
}

/** How a store wakes a queued owner that is offered its key. */
export interface WakeUps {
  /** Whether it can do so now. It may not have begun, be out of reach for a while, or not be allowed to. */
  readonly isOpen: boolean;
  /** Begins to listen, once however often it is called. Resolves when it listens, or when it is clear that it cannot for now; never rejects. */
  open(warn: (message: string) => void): Promise<void>;
  /** A waiter was not woken for long, and asks by itself. Verify that messages still arrive. */
  check?(): void;
  /**
   * Calls back when the owner may have been offered its key, also before it is known to wait; or with the milliseconds after which it should ask,
   * because another waiter has been offered the key for so long. The returned function stops listening.
   */
  listen(owner: string, wake: (askIn?: number) => void): () => void;
}

/** What the store knows of an owner and a key; `remaining` as in {@link AcquireReply}. */
export interface CheckReply {
  readonly state: 'held' | 'queued' | 'taken' | 'free';
  readonly remaining: number;
  /** The owner id of who holds the key or is offered it, one of them where several do; `null`: nobody. */
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
  /** Whether several owners may hold a key at a time, each its {@link Share}. */
  readonly isShared?: boolean;
  /** Milliseconds for which the store keeps a place in a queue that its owner does not ask for. Waiters ask at least twice as often. */
  readonly placeLifetime: number;
  /** Without it, queued waiters ask by themselves: often at the head, less often behind. */
  readonly wakeUps?: WakeUps;
  /** When a token was given, by the store's clock. Only where tokens are times. */
  timeOf?(token: number): Date;
  /** Takes the key, or refreshes it where it is this owner's already (the reply to an earlier try was lost), or says who has it. */
  acquire(request: AcquireRequest): Promise<AcquireReply>;
  /** Pushes ends later; never brings one nearer, never revives a released key. Answers each by itself: a slow node delays its own leases only. */
  renew(batch: readonly RenewRequest[]): readonly Promise<'renewed' | 'lost'>[];
  /** Renews, and reserves more tokens unless others queue. Without it, a process that has used its tokens up asks for the key anew. */
  extend?(request: ExtendRequest): Promise<ExtendReply>;
  /** Gives the key back, to the head of the queue if there is one. `'lost'`: it was not this owner's. */
  release(request: ReleaseRequest): Promise<'released' | 'lost'>;
  /** Gives up an acquire that has settled: leaves the queue, and releases the key in case that it was granted. */
  leave(tenancy: Tenancy): Promise<void>;
  /** Looks without a change. */
  check(tenancy: Tenancy): Promise<CheckReply>;
}
