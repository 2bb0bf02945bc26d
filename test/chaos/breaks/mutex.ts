import type { AcquireReply, LeaseDriver, LockStore } from '../../../lib/core.js';
import type { OracleName } from '../oracles/oracle.js';
import { changed, granted, type Break } from './break.js';
import { RECORD_STORES } from './table.js';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
let times = 0;

/** Defects of a driver of mutexes. */
export const mutexBreaks: Record<string, Break> = {
  /** A refused caller gets the key all the same. */
  'grants-refused': {
    ...mutexes('overlap', (driver) => ({
      acquire: async (request) => granted(await driver.acquire(request)),
    })),
    stores: ['redis', 'cluster', 'quorum'],
  },
  /** A release frees the key of any holder. */
  'releases-any': mutexes('overlap', (driver) => ({
    async release(request) {
      const reply = await driver.release(request);
      await pause(5);
      const { holder } = await driver.check(request);
      if (holder !== null) await driver.release({ ...request, owner: holder });
      return reply;
    },
  })),
  /** A key that was handed over is adopted by anybody, also when it has another holder by now. Before it adopts, a caller asks whether the giver has it. */
  'adopts-any': {
    ...mutexes('overlap', (driver) => ({
      check: async (request) => ({ ...(await driver.check(request)), state: 'held', remaining: 1_000 }),
      async adopt(request) {
        const reply = await driver.adopt!(request);
        return reply === 'lost' ? { token: null } : reply;
      },
    })),
    length: 10_000,
  },
  /** A renewal is said to be done, and nobody was asked. */
  'renews-nothing': {
    ...mutexes('overlap', () => ({ renew: (batch) => batch.map(async () => 'renewed'), extend: undefined })),
    length: 15_000,
  },
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
    renew: (batch) => driver.renew(batch).map((reply) => (times++ % 3 === 0 ? reply.then(() => 'lost') : reply)),
  })),
  /** A key beside the lock stays for an hour. */
  'leaves-a-key': {
    ...mutexes('nothing left', (driver) => ({
      async acquire(request) {
        await driver.acquire({ ...request, key: `${request.key}:x`, ttl: 3_600_000, queue: false, yields: undefined });
        return driver.acquire(request);
      },
    })),
    stores: ['redis', 'cluster', ...RECORD_STORES],
  },
  /** A waiter is neither woken nor asks again. */
  'lets-wait': mutexes('liveness', (driver) => {
    const asked = new Set<string>();
    return {
      wakeUps: undefined,
      async acquire(request) {
        if (asked.has(request.owner)) return { granted: false, remaining: 60_000, holder: 'nobody', ahead: 1 };
        asked.add(request.owner);
        return driver.acquire({ ...request, queue: false });
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
      void Promise.reject(new Error('nobody handles it'));
      return driver.release(request);
    },
  })),
  'has-a-bug': mutexes('trouble', (driver) => ({
    acquire: async (request) => (times++ % 10 === 0 ? (undefined as unknown as { go(): AcquireReply }).go() : driver.acquire(request)),
  })),
};

function mutexes(expects: OracleName, change: (driver: LeaseDriver, requestTimeout: number) => Partial<LeaseDriver>): Break {
  const wrap = (store: LockStore): LockStore => changed(store, { mutex: changed(store.mutex, change(store.mutex, store.requestTimeout)) });
  return { expects, kinds: ['mutex'], wrap };
}
