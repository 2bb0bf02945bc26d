/** One owner's business with one key at a store. */
export interface Tenancy {
  readonly key: string;
  /** See {@link createOwner}. */
  readonly owner: string;
}

export interface AcquireRequest extends Tenancy {
  /** Milliseconds after which the key frees itself unless it is renewed. */
  readonly ttl: number;
  /** How many fencing tokens to reserve. */
  readonly tokens: number;
  /** Join the queue of those who are served first come, first served, if the key is taken. */
  readonly queue: boolean;
  /** True once the caller has given up: the driver then sends nothing more for this request, so that the `leave` behind it is the last word. */
  abandoned(): boolean;
}

export type AcquireReply =
  | {
      readonly granted: true;
      /** First token of the reserved block; `null` where the store cannot promise that tokens grow. */
      readonly token: number | null;
    }
  | {
      readonly granted: false;
      /** Milliseconds that the holder's lease has left, as far as the store knows; negative: unknown. */
      readonly remaining: number;
      /** The holder's owner id. */
      readonly holder: string;
      /** How many queued waiters come first. */
      readonly ahead: number;
    };

export interface RenewRequest extends Tenancy {
  readonly ttl: number;
}

export interface ReleaseRequest extends Tenancy {
  /** Keep the key taken for so many milliseconds yet. 0: free it now. */
  readonly keepFor: number;
}

/** What the store knows of an owner and a key; `remaining` as in {@link AcquireReply}. */
export interface CheckReply {
  readonly state: 'held' | 'queued' | 'taken' | 'free';
  readonly remaining: number;
}

/**
 * The verbs that a store answers for one exclusive kind of lock. Each is one atomic step at the store, compares the owner, and is safe to
 * repeat. A rejection is a {@link StoreError} and means that the outcome is unknown; a driver rejects within its store's `requestTimeout`.
 */
export interface LeaseDriver {
  /** How many leases one `renew` may be asked for. Default: any number. */
  readonly largestBatch?: number;
  /** Takes the key, or refreshes it where it is this owner's already (the reply to an earlier try was lost), or says who has it. */
  acquire(request: AcquireRequest): Promise<AcquireReply>;
  /** Pushes ends later; never brings one nearer, never revives a released key. Answers in the order of the batch. */
  renew(batch: readonly RenewRequest[]): Promise<readonly ('renewed' | 'lost')[]>;
  /** Gives the key back, to the head of the queue if there is one. `'lost'`: it was not this owner's. */
  release(request: ReleaseRequest): Promise<'released' | 'lost'>;
  /** Gives up an acquire: leaves the queue, and releases the key in case that it was granted. Sent behind the acquire that it abandons. */
  leave(tenancy: Tenancy): Promise<void>;
  /** Looks without touching. */
  check(tenancy: Tenancy): Promise<CheckReply>;
}
