import type { AcquireOptions, Lease } from '../../../lib/core.js';
import { Call } from './call.js';
import type { Context, OpenLocks } from './context.js';
import { KEYS as ALL_KEYS } from './keys.js';
import { lengthOfSection, writeSection } from './section.js';
import { chooseTerms, question, type Terms } from './terms.js';
import { withAbort } from './with-abort.js';

const { mutex: KEYS } = ALL_KEYS;

/** One call of a caller of mutexes: by `using`, re-entrant or not, by a bare lease, or by one try; aborted now and then. */
export async function callMutex(context: Context, open: OpenLocks): Promise<void> {
  const { random } = context;
  const key = random.pick(KEYS);
  const terms = chooseTerms(context, key);
  const call = new Call(context, question('mutex', [key], 'alone', terms, open));
  const way = random.pick(['using', 'using', 'using', 'bare', 'try', 'again'] as const);
  await withAbort(context, call, terms, async (options) => {
    if (way === 'bare' || way === 'try') return bare(context, open, call, key, options, way);
    await open.locks.using(
      key,
      async (lease) => {
        call.granted(lease);
        await writeSection(context, call, lease, lengthOfSection(context, terms.keyTimeout));
        if (way === 'again') await again(context, open, call, key, terms, lease);
        call.releasing();
      },
      options,
    );
    call.released(true);
  });
}

async function bare(
  context: Context,
  open: OpenLocks,
  call: Call,
  key: string,
  options: AcquireOptions,
  way: 'bare' | 'try',
): Promise<void> {
  const { locks } = open;
  const lease = way === 'bare' ? await locks.acquire(key, options) : await locks.tryAcquire(key, { ...options, waitTimeout: undefined });
  if (!lease) return call.refused();
  call.granted(lease);
  try {
    await writeSection(context, call, lease, lengthOfSection(context, options.keyTimeout!));
    if (context.random.chance(0.2)) await lease.renew();
    call.claim();
  } finally {
    call.releasing();
    call.released(await lease.release());
  }
}

/** The same call chain takes its own key again: one holding, and no second claim that could exclude the first. */
async function again(context: Context, open: OpenLocks, outer: Call, key: string, terms: Terms, lease: Lease): Promise<void> {
  const call = new Call(context, {
    ...question('mutex', [key], 'alone', { ...terms, minHold: 0, maxHold: undefined }, open),
    chain: outer.chain,
  });
  await open.locks
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
