export const atWork = { now: 0, most: 0, calls: 0 };
const callPartner = async (order: string, signal: AbortSignal): Promise<string> => {
  atWork.calls++;
  atWork.most = Math.max(atWork.most, ++atWork.now);
  await new Promise((resolve) => setTimeout(resolve, 10));
  atWork.now--;
  return signal.aborted ? 'aborted' : `${order} sent`;
};

// #region semaphore
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';

export const locks = new Locks(redisStore({ url: process.env.REDIS_URL ?? 'redis://localhost:6379' }));

/** The partner allows three concurrent calls, from all our processes together. */
const partner = locks.semaphore('partner-api', { permits: 3 });

export async function send(order: string): Promise<string> {
  return partner.using((lease) => callPartner(order, lease.signal), { keyTimeout: 10_000, waitTimeout: 30_000 });
}
// #endregion

// #region several-permits
/** A bulk call counts as two: it acquires both permits together, or waits. */
const bulk = locks.semaphore('partner-api', { permits: 3, count: 2 });

export async function sendAll(orders: string[]): Promise<string> {
  return bulk.using((lease) => callPartner(`${orders.length} orders`, lease.signal), { keyTimeout: 10_000, waitTimeout: 30_000 });
}
// #endregion
