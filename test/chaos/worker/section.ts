import type { AcquireOptions, Lease, MultiLease } from '../../../lib/core.js';
import { now } from '../history/clock.js';
import type { Call } from './call.js';
import type { Context } from './context.js';

/** How long a body works: mostly some milliseconds, so that many get in, and now and then longer than its lease, above all if that is not renewed. */
export function lengthOfSection({ random }: Context, { keyTimeout = 0, renew }: AcquireOptions): number {
  if (random.chance(renew ? 0.04 : 0.5)) return Math.min(keyTimeout * (0.5 + 1.5 * random.next()), 2_500);
  return random.chance(0.3) ? random.int(0, 60) : random.int(0, 8);
}

/** Takes a lease, works under it, and gives it back. */
export async function hold<L extends Lease | MultiLease>(
  context: Context,
  lock: { using(body: (lease: L) => Promise<void>, options: AcquireOptions): Promise<void> },
  section: (context: Context, call: Call, lease: L, length: number) => Promise<void>,
  call: Call,
  options: AcquireOptions,
): Promise<void> {
  await lock.using(async (lease) => {
    call.granted(lease);
    await section(context, call, lease, lengthOfSection(context, options));
    call.releasing();
  }, options);
  call.released(true);
}

/** Work under an exclusive lease: both counters of each of its keys are read and, after a pause, written. */
export async function writeSection(context: Context, call: Call, lease: Lease | MultiLease, length: number): Promise<void> {
  const steps = length > 300 ? Math.min(6, Math.ceil(length / 150)) : 1;
  for (let step = 0; step < steps && lease.remaining() > 0; step++) await writeOnce(context, call, lease, length / steps);
}

async function writeOnce(context: Context, call: Call, lease: Lease | MultiLease, length: number): Promise<void> {
  const { history, random } = context;
  const leases = 'leases' in lease ? lease.leases : [lease];
  const index = random.int(0, leases.length - 1);
  const [key, one] = [call.keys[index]!, leases[index]!];
  const token = one.fencingToken;
  call.claim();
  const counter = context.counter(key);
  const readAt = now();
  const value = counter.read();
  const seen = token === null ? undefined : await context.fenced.read(key, token);
  await context.pause(length * random.next());
  call.claim();
  const write = counter.writeIfValid(value + 1, () => one.remaining());
  if (write) {
    const { checked, remaining, done } = write;
    history.write({ e: 'wrote', id: call.id, key, read: value, readAt, remaining, done }, checked);
  }
  if (token === null) return;
  // Not checked against the lease: the resource must refuse what comes too late.
  const isWritten = seen !== undefined && (await context.fenced.write(key, token, seen));
  history.write({ e: 'fenced', id: call.id, key, token, outcome: isWritten ? 'written' : 'refused', value: seen ?? -1 });
}

/** Work under a lease that others hold beside it: it only claims. */
export async function shareSection(context: Context, call: Call, lease: Lease, length: number): Promise<void> {
  const steps = Math.max(2, Math.min(6, Math.ceil(length / 150)));
  for (let step = 0; step < steps && lease.remaining() > 0; step++) {
    call.claim();
    await context.pause(length / steps);
  }
  call.claim();
}
