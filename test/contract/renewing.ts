import type { LeaseDriver, RenewRequest } from '../../lib/core/store/lease-driver.js';

type Renewal = Promise<'renewed' | 'lost'>;

/** A driver's `renew` that answers each lease of a batch by itself. */
export function renewing(answer: (request: RenewRequest) => Renewal): LeaseDriver['renew'] {
  return (batch) => batch.map((request) => answer(request));
}

/** The driver's answer for one lease. */
export function renewalBy(driver: LeaseDriver, request: RenewRequest): Renewal {
  return driver.renew([request])[0] as Renewal;
}
