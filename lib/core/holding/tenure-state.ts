import type { LockLostError } from '../model/errors.js';

/**
 * How a tenure ends. What was released or handed over is lost if the store answers that somebody else had it by then.
 *
 * ```
 * held ──► ending ──┬──► released ────┬──► lost
 *   │        │      └──► handedOver ──┤
 *   └────────┴────────────────────────┘
 * ```
 *
 * | state      | since                                                              | renewed | the next caller of this process gets it |
 * |------------|--------------------------------------------------------------------|---------|-----------------------------------------|
 * | held       | its grant                                                          | yes     | without a request, within the limits    |
 * | ending     | its holder was asked to end, or reads on under its write lock      | yes     | by a request                            |
 * |            | each lease that is left has reached its `maxHold`, or the first has | no      | by a request                            |
 * | released   | its last lease was released, or the next request is to give it up  | no      | –                                       |
 * | handedOver | its last lease was released for another process to adopt it        | no      | –                                       |
 * | lost       | its time is over, the store says so, or an operator has taken it   | no      | –                                       |
 */
export type TenureState =
  | { readonly is: 'held' | 'released' }
  /** `reason`: why its leases abort; those of later re-entrant calls at once. `undefined`: they do not. */
  | { readonly is: 'ending'; readonly isRenewed: boolean; readonly reason: LockLostError | undefined }
  /** The owner of the ticket, and until when another process may adopt it, on the monotonic clock. */
  | { readonly is: 'handedOver'; readonly owner: string; readonly until: number }
  | { readonly is: 'lost'; readonly error: LockLostError };

export const HELD: TenureState = { is: 'held' };

/** It ends with its current turn. The first reason counts, and what is not renewed any more stays so. */
export function ending(state: TenureState, isRenewed: boolean, reason?: LockLostError): TenureState {
  if (state.is === 'held') return { is: 'ending', isRenewed, reason };
  return state.is === 'ending' ? { is: 'ending', isRenewed: isRenewed && state.isRenewed, reason: state.reason ?? reason } : state;
}

/** Whether the watchdog may renew it. */
export function isRenewedIn(state: TenureState): boolean {
  return state.is === 'held' || (state.is === 'ending' && state.isRenewed);
}
