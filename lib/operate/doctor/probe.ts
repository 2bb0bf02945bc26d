import type { DoctorCheck } from '../../core/model/doctor-report.js';
import type { AcquireReply, LeaseDriver, Tenancy, WakeUps } from '../../core/store/lease-driver.js';
import { bad, checksOf, warning, type Finding } from '../../core/store/store-doctor.js';
import { duration, isSettledWithin, now } from '../../core/util/clock.js';

/** Milliseconds until the key of a killed doctor is free. */
const TTL = 10_000;
const LOST = 'the lease was lost';
const RIGHTS = 'Give the user the rights that are missing.';

type Send = <T>(name: string, request: () => Promise<T>) => Promise<T>;

/**
 * Takes a key as two processes would, and releases it. It never rejects.
 *
 * @param key that no other caller uses.
 * @param within milliseconds to wait for a wake-up.
 */
export async function tryLock(
  mutex: LeaseDriver,
  key: string,
  owners: readonly [string, string],
  within: number,
): Promise<{ readonly checks: readonly DoctorCheck[]; readonly slowest: number }> {
  let last = 'acquire';
  let slowest = 0;
  const send: Send = async (name, request) => {
    last = name;
    const start = now();
    return request().finally(() => (slowest = Math.max(slowest, now() - start)));
  };
  const wakeUps = useLock(mutex, { key, owner: owners[0] }, { key, owner: owners[1] }, within, send);
  const used = 'acquired, renewed, queued, handed over and released; the longest request took';
  const failed = ({ message }: Error): Finding =>
    bad(`${last} failed: ${message.split('\n')[0]}`, RIGHTS, `a lock could not be used (${last})`);
  const checks = await checksOf({
    probe: () => wakeUps.then(() => ({ seen: `${used} ${duration(slowest)}` }), failed),
    'wake-ups': () => wakeUps.catch((): Finding => ({ state: 'unknown', seen: 'not known: a lock could not be tried' })),
  });
  return { checks, slowest };
}

/** Resolves to whether waiters are woken. @throws if the lock is not as it must be. */
async function useLock(mutex: LeaseDriver, first: Tenancy, second: Tenancy, within: number, send: Send): Promise<Finding> {
  const acquire = (name: string, tenancy: Tenancy, queue = false): Promise<AcquireReply> =>
    send(name, () => mutex.acquire({ ...tenancy, ttl: TTL, tokens: 1, queue }));
  const release = async (tenancy: Tenancy): Promise<void> =>
    expect((await send('release', () => mutex.release({ ...tenancy, keepFor: 0 }))) === 'released', LOST);
  // A quorum sends a wake-up for each member, also after the first. Without a listener it would count as an offer to a waiter that has gone.
  let stop: (() => void) | undefined;
  try {
    const before = await acquire('acquire', first);
    expect(before.granted, 'another caller has the key');
    expect((await send('renew', () => mutex.renew([{ ...first, ttl: TTL }])[0]!)) === 'renewed', LOST);
    expect((await send('extend', async () => mutex.extend?.({ ...first, ttl: TTL, tokens: 1 }))) !== 'lost', LOST);
    let reason = '';
    await mutex.wakeUps?.open((message) => (reason = message));
    const woken = new Promise<void>((resolve) => (stop = mutex.wakeUps?.listen(second.owner, () => resolve())));
    expect(!(await acquire('queue', second, true)).granted, 'two owners have the key');
    await release(first);
    const finding = await wakeUpFinding(mutex.wakeUps, woken, reason, within);
    const after = await acquire('hand over', second);
    expect(after.granted, 'another caller has the key');
    const isLarger = before.token === null || after.token === null || after.token > before.token;
    expect(isLarger, `the fencing token did not grow, from ${before.token} to ${after.token}`);
    await release(second);
    return finding;
  } finally {
    stop?.();
    await Promise.all([first, second].map((tenancy) => mutex.leave(tenancy).catch(() => undefined)));
  }
}

async function wakeUpFinding(wakeUps: WakeUps | undefined, woken: Promise<void>, reason: string, within: number): Promise<Finding> {
  if (!wakeUps) return { seen: 'waiters poll, as always on this store' };
  const start = now();
  const isPolling = wakeUps.state === 'polling';
  // Without messages there is no wake-up to wait for.
  const isWoken = !isPolling && (await isSettledWithin(wakeUps.isOpen ? within : 0, woken));
  if (isWoken) return { seen: `${duration(now() - start)} after the release` };
  const seen = isPolling ? 'waiters poll here' : `no wake-up arrived within ${duration(within)}`;
  return warning(reason || seen, 'Waiters notice a release later, and send more requests.');
}

function expect(isTrue: boolean, problem: string): asserts isTrue {
  if (!isTrue) throw new Error(problem);
}
