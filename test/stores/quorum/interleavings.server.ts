import { StoreError } from '../../../lib/core/model/errors.js';
import type { AcquireReply, AcquireRequest, LeaseDriver, Tenancy } from '../../../lib/core/store/lease-driver.js';
import type { LockStore } from '../../../lib/core/store/lock-store.js';
import { clock, OFFSET } from '../records/model/stopped-clock.js';

export const TTL = 5_000;

export type Verb = 'acquire' | 'renew' | 'release' | 'leave';
export type Word = AcquireReply | 'renewed' | 'lost' | 'released' | 'left';

/** A request to a member that is under way. */
export interface Exchange {
  readonly verb: Verb;
  readonly owner: string;
  readonly member: number;
  readonly request: Tenancy;
  /** Of a renewal: the words of its members so far. */
  readonly round: Word[] | undefined;
  /** What the member has done, once the request has arrived. */
  reply?: Word;
  readonly resolve: (reply: Word) => void;
  readonly reject: (error: StoreError) => void;
}

/** A member: one key, and what it remembers. */
export class Server {
  lease: { owner: string; endsAt: number } | undefined;
  fence = 0;
  /** At first so long ago that it has its vote. */
  startedAt = -1e9;

  /** @param lead milliseconds by which its wall clock is wrong. */
  constructor(private lead: number) {}

  /** Its wall clock is set, by which its leases end. */
  jump(ms: number): void {
    this.lead += ms;
    if (this.lease) this.lease.endsAt -= ms;
  }

  restart(): void {
    this.lease = undefined;
    this.fence = 0;
    this.startedAt = clock.time;
  }

  /** Whoever has the key now. */
  get holder(): string | undefined {
    return this.lease && this.lease.endsAt > clock.time ? this.lease.owner : undefined;
  }

  /** What its answers depend on. */
  state(): unknown {
    const age = clock.time - this.startedAt;
    return [this.holder && this.lease, this.fence, this.lead, age > 2 * TTL ? 'old' : age];
  }

  serve(verb: Verb, request: Tenancy): Word {
    const { owner } = request;
    if (verb === 'acquire') return this.acquire(request as AcquireRequest);
    const isOwn = this.holder === owner;
    if (verb === 'renew') {
      if (isOwn) this.lease!.endsAt = Math.max(this.lease!.endsAt, clock.time + TTL);
      return isOwn ? 'renewed' : 'lost';
    }
    if (isOwn) this.lease = undefined;
    if (verb === 'leave') return 'left';
    return isOwn ? 'released' : 'lost';
  }

  private acquire({ owner, ttl, tokens, floor = 0 }: AcquireRequest): AcquireReply {
    const { holder } = this;
    if (holder !== undefined && holder !== owner) return { granted: false, holder, remaining: this.lease!.endsAt - clock.time, ahead: 0 };
    const token = Math.max(floor, this.fence + 1, (OFFSET + clock.time + this.lead) * 1000);
    this.fence = token + tokens - 1;
    this.lease = { owner, endsAt: Math.max(clock.time + ttl, holder === undefined ? 0 : this.lease!.endsAt) };
    return { granted: true, token };
  }
}

/** A store on a server, for one process: each request waits until it is served. */
export function storeOn(server: Server, send: (verb: Verb, request: Tenancy) => Promise<Word>): LockStore {
  const mutex: LeaseDriver = {
    queueEntryLifetime: TTL,
    acquire: (request) => send('acquire', request) as Promise<AcquireReply>,
    renew: (batch) => batch.map((request) => send('renew', request) as Promise<'renewed' | 'lost'>),
    release: (request) => send('release', request) as Promise<'released' | 'lost'>,
    leave: async (request) => void (await send('leave', request)),
    check: () => Promise.reject(new StoreError('Nobody looks here.', { transient: false })),
  };
  const remembers = (): Promise<number> => Promise.resolve(clock.time - server.startedAt);
  return { name: 'stub', requestTimeout: TTL, mutex, remembers, close: () => Promise.resolve() } as unknown as LockStore;
}

/**
 * What an owner asks for, one letter each: A: acquire, N: renew, R: release, or leave if it was not granted. Once granted, it asks for no second
 * grant; once lost, for no renewal.
 */
export interface Scenario {
  /** Their scripts: each owner is in a process of its own. */
  readonly owners: readonly string[];
  /** How often a member may be started again, and be empty. */
  readonly restarts?: number;
  /** Milliseconds that may pass, one after the other: each is longer than a memberTimeout. */
  readonly passes?: readonly number[];
  /** How many requests or replies may be lost. */
  readonly failures?: number;
  /** Milliseconds by which the clocks of the members are wrong. */
  readonly clocks?: readonly number[];
  /** Milliseconds by which the wall clock of the first member jumps, one after the other. */
  readonly jumps?: readonly number[];
  /** When it may jump: while no request is under way; or, besides, while each holder has all votes. Default: at any time. */
  readonly jumpsAt?: 'rest' | 'all votes';
  /** Default: as long as the leases. */
  readonly quarantine?: number;
  /** Whether a request arrives, and is answered later. Else that is one step. */
  readonly isSplit?: boolean;
  /** A defect of the members. */
  readonly serve?: (server: Server, verb: Verb, request: Tenancy) => Word;
  /** A defect of what they say of themselves. */
  readonly remembers?: () => Promise<number>;
}
