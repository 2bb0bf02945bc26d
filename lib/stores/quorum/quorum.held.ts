import type { Share, Tenancy } from '../../core/store/lease-driver.js';
import { after, now } from '../../core/util/clock.js';
import { idOf } from './quorum.member.js';

/** Milliseconds between the looks for leases that ended without a release. */
const SWEEP = 10_000;

/**
 * The members that may have heard of an owner; true: it has said that it grants the key. Only these count in a renewal: another one may have a place in
 * its queue, which the owner has to leave. It loses with it what it has been granted meanwhile.
 */
export type Known = Map<number, boolean>;

/** A lease that a majority has granted. */
export interface Held {
  /** The last token that was reserved; 0: there is none. */
  readonly lastToken: number;
  readonly share: Share | undefined;
  readonly known: Known;
  /** On the monotonic clock: no member has the lease any more. */
  endsAt: number;
}

/** The leases of this process. One that ends without a release is forgotten soon after. */
export class HeldLeases {
  private readonly leases = new Map<string, Held>();
  private timer: NodeJS.Timeout | undefined;

  get(tenancy: Tenancy): Held | undefined {
    return this.leases.get(idOf(tenancy.key, tenancy.owner));
  }

  has(tenancy: Tenancy): boolean {
    return this.get(tenancy) !== undefined;
  }

  granted(tenancy: Tenancy, ttl: number, lastToken: number, known: Known, share: Share | undefined): void {
    const before = this.get(tenancy);
    this.leases.set(idOf(tenancy.key, tenancy.owner), {
      lastToken: Math.max(before?.lastToken ?? 0, lastToken),
      share,
      known,
      endsAt: Math.max(before?.endsAt ?? 0, now() + ttl),
    });
    this.timer ??= after(SWEEP, this.sweep).unref();
  }

  renewed(tenancy: Tenancy, ttl: number): void {
    const lease = this.get(tenancy);
    if (lease) lease.endsAt = Math.max(lease.endsAt, now() + ttl);
  }

  delete({ key, owner }: Tenancy): void {
    this.leases.delete(idOf(key, owner));
  }

  private readonly sweep = (): void => {
    const time = now();
    for (const [id, { endsAt }] of this.leases) if (endsAt < time) this.leases.delete(id);
    this.timer = this.leases.size > 0 ? after(SWEEP, this.sweep).unref() : undefined;
  };
}
