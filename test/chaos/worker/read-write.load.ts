import type { AcquireOptions, Lease, Locks, ReadWriteLock } from '../../../lib/core.js';
import { Call } from './call.js';
import type { Context } from './context.js';
import { KEYS } from './keys.js';
import { hold, lengthOfSection, shareSection, writeSection } from './section.js';
import { chooseTerms, question } from './terms.js';
import { withAbort } from './with-abort.js';

/** Callers of one worker; those of five together are 200. */
const CROWD = 40;

/** Readers, writers, and writers that go on as readers: these read under their own write lock and release that one first. */
export async function callReadWrite(context: Context, locks: Locks): Promise<void> {
  const { random } = context;
  const key = random.pick(KEYS.readWrite);
  if (random.chance(1 / 50)) return crowd(context, locks, key);
  const way = random.pick(['read', 'read', 'write', 'downgrade'] as const);
  const terms = chooseTerms(context, key);
  // Where a writer goes on as a reader, the first lease must end by its release, and by nothing else.
  if (way === 'downgrade') terms.minHold = 0;
  const lock = locks.readWriteLock(key, { policy: random.pick(['fair', 'fair', 'readers', 'writers']) });
  const call = new Call(context, question('read-write', [key], way === 'read' ? 'read' : 'alone', terms, locks));
  await withAbort(context, call, terms, (options) => {
    if (way === 'downgrade') return downgrade(context, locks, lock, call, options);
    return hold(context, way === 'read' ? lock.read : lock.write, way === 'read' ? shareSection : writeSection, call, options);
  });
}

/** So many readers of one key that its record or its set of holders gets long. Each has a lease of its own. */
async function crowd(context: Context, locks: Locks, key: string): Promise<void> {
  const { read } = locks.readWriteLock(key);
  const reader = async (): Promise<void> => {
    const terms = chooseTerms(context, key);
    const call = new Call(context, question('read-write', [key], 'read', terms, locks));
    await withAbort(context, call, terms, (options) => hold(context, read, shareSection, call, options));
  };
  await Promise.all(Array.from({ length: CROWD }, reader));
}

async function downgrade(context: Context, locks: Locks, lock: ReadWriteLock, writer: Call, options: AcquireOptions): Promise<void> {
  const [key] = writer.keys as [string];
  const length = lengthOfSection(context, options);
  const terms = {
    ...chooseTerms(context, key),
    ...options,
    waitTimeout: 1_000,
    fair: false,
    minHold: 0,
    maxHold: undefined,
    signal: undefined,
  };
  let reader: Call | undefined;
  let reading: Lease | undefined;
  const read = async (): Promise<void> => {
    reader = new Call(context, { ...question('read-write', [key], 'read', terms, locks), chain: writer.chain });
    try {
      reading = await lock.read.acquire(terms);
      reader.granted(reading);
    } catch (error) {
      reader.failed(error);
    }
  };
  try {
    await lock.write.using(async (lease) => {
      writer.granted(lease);
      await writeSection(context, writer, lease, length);
      await read();
      writer.releasing();
    }, options);
    writer.released(true);
    if (reading) await shareSection(context, reader!, reading, length);
  } finally {
    if (reading) {
      reader!.releasing();
      reader!.released(await reading.release());
    }
  }
}
