import type { LockKindName } from '../model/events.js';
import type { ResolvedOptions } from '../model/options.js';
import type { Share } from '../store/lease-driver.js';

/** How many holders of this process may have a key in a row, and for how many milliseconds, before it goes back to the store. */
export type TurnLimits = Readonly<Record<'handOvers' | 'time', number>>;

/** A grant of a store. */
export interface Grant {
  readonly owner: string;
  readonly kind: LockKindName;
  /** The options of the first caller. */
  readonly options: Pick<ResolvedOptions, 'keyTimeout' | 'renew'>;
  /** The share that is held of a key that several may hold. */
  readonly share: Share | undefined;
  /** When the request was sent. Validity counts from then, because the store began to count later. */
  readonly sentAt: number;
  readonly grantedAt: number;
  /** How many fencing tokens were reserved, and the first of them. */
  readonly tokens: number;
  readonly token: number | null;
  /** Whether the first request found the key taken. */
  readonly isContested: boolean;
}
