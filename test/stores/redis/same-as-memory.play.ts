// The scripts in Redis and the steps on records are written twice. Whatever is asked, in whichever order, both answer the same.
import fc from 'fast-check';
import type { LatchDriver, LeaseDriver, LockStore } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { ALL_NIGHT, runs } from './script.play.js';
import type { Setting } from './setting.js';

const OWNERS = ['o0', 'o1', 'o2', 'o3', 'o4'];
const TTL = 60_000;
/** An offer lasts a second. A run that takes so long proves nothing. */
const LONGEST_RUN = 700;
const PERMITS = 3;

type Verb = 'acquire' | 'queue' | 'yield' | 'renew' | 'extend' | 'release' | 'keep' | 'leave' | 'check';
interface Step {
  readonly verb: Verb;
  readonly owner: number;
  readonly other: number;
}
type Kind = 'mutex' | 'read/write lock' | 'semaphore';

const step = fc.record({
  verb: fc.constantFrom<Verb[]>(
    'acquire',
    'queue',
    'queue',
    'queue',
    'yield',
    'renew',
    'extend',
    'release',
    'release',
    'keep',
    'leave',
    'check',
  ),
  owner: fc.nat(OWNERS.length - 1),
  other: fc.nat(OWNERS.length - 1),
});
const steps = fc.array(step, { minLength: 1, maxLength: 40, size: 'max' });

/** Of a read/write lock the first two write, and one of the readers may read beside a writer. */
function shareOf(kind: Kind, owner: number) {
  if (kind === 'mutex') return undefined;
  if (kind === 'semaphore') return { count: 1 + (owner % PERMITS), permits: PERMITS, rank: 0 } as const;
  if (owner < 2) return { count: Infinity, permits: Infinity, rank: 0 } as const;
  return { count: 1, permits: Infinity, rank: 0, ...(owner === 2 && { beside: 'o0' }) } as const;
}

function driverOf(store: LockStore, kind: Kind, owner: number): LeaseDriver {
  if (kind === 'mutex') return store.mutex;
  return kind === 'semaphore' ? store.semaphore! : store.readWriteLock![owner < 2 ? 'write' : 'read'];
}

/** The reply, without times and tokens. */
async function replyOf(store: LockStore, kind: Kind, key: string, { verb, owner: number, other }: Step): Promise<unknown> {
  const owner = OWNERS[number]!;
  const driver = driverOf(store, kind, number);
  const tenancy = { key, owner };
  switch (verb) {
    case 'acquire':
    case 'queue':
    case 'yield': {
      const isYield = verb === 'yield' && kind === 'mutex' && other !== number;
      const share = shareOf(kind, number);
      const request = { ...tenancy, ttl: TTL, tokens: 2, queue: verb !== 'acquire', share, ...(isYield && { yields: OWNERS[other]! }) };
      const reply = await driver.acquire(request);
      if (reply.granted) return { granted: true, yielded: reply.yielded, hasToken: reply.token !== null };
      const { holder, ahead, yielded } = reply;
      // Of several who end together any may be named.
      return { granted: false, holder: kind === 'mutex' ? holder : undefined, ahead, yielded };
    }
    case 'renew':
      return driver.renew([{ ...tenancy, ttl: TTL }])[0];
    case 'extend': {
      // Redis has it for the mutex only.
      if (kind !== 'mutex') return undefined;
      const reply = await driver.extend?.({ ...tenancy, ttl: TTL, tokens: 2 });
      return typeof reply === 'object' ? 'extended' : reply;
    }
    case 'release':
      return driver.release({ ...tenancy, keepFor: 0 });
    case 'keep':
      return driver.release({ ...tenancy, keepFor: TTL });
    case 'leave':
      return driver.leave(tenancy);
    case 'check': {
      const { state, holder, token } = await driver.check(tenancy);
      return kind === 'mutex' ? { state, holder, hasToken: token !== null } : state;
    }
  }
}

interface LatchStep {
  readonly verb: 'set' | 'count' | 'repeat' | 'look' | 'leave';
  readonly line: number;
  readonly count: number;
}
const latchSteps = fc.array(
  fc.record<LatchStep>({
    verb: fc.constantFrom('set', 'count', 'count', 'repeat', 'look', 'leave'),
    line: fc.nat(2),
    count: fc.integer({ min: 1, max: 3 }),
  }),
  { minLength: 1, maxLength: 30, size: 'max' },
);

export function samePlay(setting: Setting, numRuns: number): void {
  describe('Redis and the records answer the same, whatever is asked', () => {
    let stores: readonly LockStore[];
    let keys = 0;
    beforeEach(() => {
      stores = [redisStore({ options: setting.server.connection }), memoryStore()];
    });
    afterEach(() => Promise.all(stores.map((store) => store.close())));

    it.each<Kind>(['mutex', 'read/write lock', 'semaphore'])(
      'of a %s',
      async (kind) => {
        const property = fc.asyncProperty(steps, async (all) => {
          const key = `key ${++keys}`;
          const start = performance.now();
          for (const [index, each] of all.entries()) {
            const [redis, memory] = await Promise.all(stores.map((store) => replyOf(store, kind, key, each)));
            fc.pre(performance.now() - start < LONGEST_RUN);
            expect([index, each, redis]).toEqual([index, each, memory]);
          }
        });
        await fc.assert(property, { ...runs(numRuns), maxSkipsPerRun: 1_000 });
      },
      ALL_NIGHT,
    );

    it(
      'of a count-down latch',
      async () => {
        const property = fc.asyncProperty(latchSteps, async (all) => {
          const key = `key ${++keys}`;
          let operations = 0;
          let last: ((driver: LatchDriver) => Promise<unknown>) | undefined;
          for (const { verb, line, count } of all) {
            const operation = { line: `line ${line}`, number: ++operations };
            const owner = OWNERS[line]!;
            const change = { key, ttl: TTL, operation };
            const look = async (driver: LatchDriver): Promise<unknown> => {
              const state = await driver.look({ key, owner, queue: true });
              return state && [state.count, state.id, state.round];
            };
            const ask = {
              set: (driver: LatchDriver) => driver.trySetCount({ ...change, count }),
              count: (driver: LatchDriver) => driver.countDown(change),
              repeat: last ?? look,
              look,
              leave: (driver: LatchDriver) => driver.leave({ key, owner }),
            }[verb];
            if (verb === 'set' || verb === 'count') last = ask;
            const [redis, memory] = await Promise.all(stores.map((store) => ask(store.countDownLatch!)));
            expect([verb, redis]).toEqual([verb, memory]);
          }
        });
        await fc.assert(property, { ...runs(numRuns), maxSkipsPerRun: 1_000 });
      },
      ALL_NIGHT,
    );
  });
}
