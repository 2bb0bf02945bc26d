import type { AcquireReply, LeaseDriver, LockStore } from '../lib/core.js';
import type { Kind } from './history/entry.js';
import type { OracleName } from './oracles/oracle.js';

/** A defect that a store could have, to prove that an oracle sees it. */
interface Break {
  readonly expects: OracleName;
  readonly kinds: readonly Kind[];
  wrap(store: LockStore): LockStore;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
let lastToken = Date.now() * 1_000;

export const BREAKS: Record<string, Break> = {
  /** Who is refused gets the key all the same. */
  'grants-refused': mutexes('overlap', (driver) => ({
    acquire: async (request) => granted(await driver.acquire(request)),
  })),
  /** A release frees the key of whoever has it. */
  'releases-any': mutexes('overlap', (driver) => ({
    async release(request) {
      const reply = await driver.release(request);
      await pause(5);
      const { holder } = await driver.check(request);
      if (holder !== null) await driver.release({ ...request, owner: holder });
      return reply;
    },
  })),
  /** A renewal is said to be done, and nobody was asked. */
  'renews-nothing': mutexes('overlap', () => ({
    renew: async (batch) => batch.map(() => 'renewed' as const),
    extend: undefined,
  })),
  /** The unguarded counter sees it too. */
  'loses-updates': mutexes('lost update', (driver) => ({
    acquire: async (request) => granted(await driver.acquire(request)),
  })),
  'repeats-tokens': mutexes('tokens', (driver) => ({
    async acquire(request) {
      const reply = await driver.acquire(request);
      return reply.granted ? { ...reply, token: 4_711 } : reply;
    },
  })),
  /** Two holders with one token: the resource cannot tell them apart. */
  'shares-tokens': mutexes('fence', (driver) => ({
    async acquire(request) {
      const reply = granted(await driver.acquire(request));
      return reply.granted ? { ...reply, token: 4_711 } : reply;
    },
  })),
  /** A renewal says now and then that a lease is lost which is not. */
  'loses-early': mutexes('early loss', (driver) => ({
    renew: async (batch) => (await driver.renew(batch)).map((reply) => (lastToken++ % 3 === 0 ? 'lost' : reply)),
  })),
  /** Who gives up stays in the queue. */
  'never-leaves': mutexes('nothing left', () => ({ leave: async () => undefined })),
  /** Who waits is neither woken nor asks again. */
  'lets-wait': mutexes('liveness', (driver) => {
    const asked = new Set<string>();
    return {
      wakeUps: undefined,
      async acquire(request) {
        if (asked.has(request.owner)) return { granted: false, remaining: 60_000, holder: 'nobody', ahead: 1 };
        asked.add(request.owner);
        return driver.acquire({ ...request, queue: false, isReady: undefined });
      },
    };
  }),
  /** An answer comes long after the requestTimeout. */
  'answers-late': mutexes('liveness', (driver, requestTimeout) => ({
    async acquire(request) {
      const reply = await driver.acquire(request);
      if (!reply.granted) await pause(requestTimeout + 1_500);
      return reply;
    },
  })),
  'forgets-a-rejection': mutexes('trouble', (driver) => ({
    release(request) {
      void Promise.reject(new Error('nobody hears of it'));
      return driver.release(request);
    },
  })),
  'has-a-bug': mutexes('trouble', (driver) => ({
    acquire: async (request) => (lastToken++ % 10 === 0 ? (undefined as unknown as { go(): AcquireReply }).go() : driver.acquire(request)),
  })),
  'leaves-a-timer': {
    expects: 'nothing left',
    kinds: ['mutex'],
    wrap: (store) =>
      changed(store, {
        async close() {
          setTimeout(() => undefined, 5_000);
          await store.close();
        },
      }),
  },
};

export function breakStore(store: LockStore, name: string): LockStore {
  const broken = BREAKS[name];
  if (!broken) throw new Error(`Unknown break "${name}". Known are: ${Object.keys(BREAKS).join(', ')}`);
  return broken.wrap(store);
}

function mutexes(expects: OracleName, change: (driver: LeaseDriver, requestTimeout: number) => Partial<LeaseDriver>): Break {
  const wrap = (store: LockStore): LockStore => changed(store, { mutex: changed(store.mutex, change(store.mutex, store.requestTimeout)) });
  return { expects, kinds: ['mutex'], wrap };
}

function granted(reply: AcquireReply): AcquireReply {
  return reply.granted ? reply : { granted: true, token: ++lastToken };
}

/** The same, but for some members. */
function changed<T extends object>(original: T, changes: Partial<T>): T {
  return new Proxy(original, {
    get(target, name) {
      if (name in changes) return changes[name as keyof T];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
