import { type AcquireOptions, type Lease, LockLostError, type Locks } from '../../../lib/core.js';
import { Call } from './call.js';
import type { Context } from './context.js';
import { KEYS } from './keys.js';
import { lengthOfSection, writeSection } from './section.js';
import { takeAway } from './take-away.js';
import { chooseTerms, question, type Terms } from './terms.js';
import { withAbort } from './with-abort.js';

/** One call of a caller of mutexes: by `using`, re-entrant or not, by a bare lease, by one try, or as a part of a ring; aborted now and then. */
export async function callMutex(context: Context, locks: Locks): Promise<void> {
  const { random } = context;
  if (random.chance(1 / 100) && locks.store.supports('inspect')) return takeAway(context, locks);
  const key = random.pick(KEYS.mutex);
  const terms = chooseTerms(context, key);
  const call = new Call(context, question('mutex', [key], 'alone', terms, locks));
  const way = random.pick(['using', 'using', 'using', 'bare', 'try', 'again', 'ring'] as const);
  await withAbort(context, call, terms, async (options) => {
    if (way === 'ring' && mayRing(locks, key)) return ring(context, locks, call, key, options);
    if (way === 'bare' || way === 'try') return bare(context, locks, call, key, options, way);
    await locks.using(
      key,
      async (lease) => {
        call.granted(lease);
        await writeSection(context, call, lease, lengthOfSection(context, terms));
        if (way === 'again') await again(context, locks, call, key, terms, lease);
        call.releasing();
      },
      options,
    );
    call.released(true);
  });
}

async function bare(context: Context, locks: Locks, call: Call, key: string, options: AcquireOptions, way: 'bare' | 'try'): Promise<void> {
  const lease = way === 'bare' ? await locks.acquire(key, options) : await locks.tryAcquire(key, { ...options, waitTimeout: undefined });
  if (!lease) return call.ended('timeout');
  call.granted(lease);
  try {
    await writeSection(context, call, lease, lengthOfSection(context, options));
    if (context.random.chance(0.2)) await lease.renew();
    call.claim();
  } finally {
    call.releasing();
    call.released(await lease.release());
  }
}

/** Where a store has no hand-over, it is a call like others. On the other keys a lost ticket could keep the key for longer than the oracles allow for. */
function mayRing(locks: Locks, key: string): boolean {
  return locks.store.mutex.adopt !== undefined && key.includes('quick');
}

/** Takes the key from any worker that has handed it over, else from the store, and mostly hands it over again: its worker may be killed at any time. */
async function ring(context: Context, locks: Locks, call: Call, key: string, options: AcquireOptions): Promise<void> {
  const { random, resource } = context;
  const tickets = `tickets-${key}`;
  const before = await resource.lpop(tickets);
  const lease = await (before === null ? locks.acquire(key, options) : locks.adopt(before, options)).catch(async (error: unknown) => {
    // An adoption that is called off leaves the ticket good.
    if (before !== null && !(error instanceof LockLostError)) await resource.rpush(tickets, before);
    throw error;
  });
  call.granted(lease);
  await writeSection(context, call, lease, random.int(0, 8));
  call.releasing();
  const next = random.chance(0.8) && (await lease.handOver({ within: random.pick([300, 600, 800]) }).catch(() => undefined));
  // Nobody says that a key is free which was handed over. A message queue may deliver a ticket twice.
  if (next) await resource.rpush(tickets, next, ...(random.chance(0.2) ? [next] : []));
  else call.released(await lease.release());
}

/** The same call chain takes its own key again: one holding, and no second claim that could exclude the first. */
async function again(context: Context, locks: Locks, outer: Call, key: string, terms: Terms, lease: Lease): Promise<void> {
  const call = new Call(context, {
    ...question('mutex', [key], 'alone', { ...terms, minHold: 0, maxHold: undefined }, locks),
    chain: outer.chain,
  });
  await locks
    .using(
      key,
      async (inner) => {
        call.granted(inner);
        await writeSection(context, call, inner, 5);
        call.releasing();
      },
      { keyTimeout: terms.keyTimeout, waitTimeout: 500 },
    )
    .then(
      () => call.released(true),
      (error: unknown) => {
        call.failed(error);
        if (lease.remaining() > 0) outer.claim();
      },
    );
}
