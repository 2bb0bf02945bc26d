import type { LatchDriver, LeaseDriver } from '../../../lib/core.js';
import { changed, granted, type Break } from './break.js';

/** Defects of the other drivers, and of a store as a whole. */
export const otherBreaks: Record<string, Break> = {
  /** There is one permit more than there should be. */
  'adds-permits': {
    expects: 'overlap',
    kinds: ['semaphore'],
    wrap(store) {
      const semaphore = store.semaphore!;
      const acquire: LeaseDriver['acquire'] = (request) =>
        semaphore.acquire({ ...request, share: { ...request.share!, permits: request.share!.permits + 1 } });
      return changed(store, { semaphore: changed(semaphore, { acquire }) });
    },
  },
  /** A reader gets in also beside a writer. */
  'lets-readers-in': {
    expects: 'overlap',
    kinds: ['read-write'],
    wrap(store) {
      const { read, write } = store.readWriteLock!;
      const acquire: LeaseDriver['acquire'] = async (request) => granted(await read.acquire(request));
      return changed(store, { readWriteLock: { read: changed(read, { acquire }), write } });
    },
  },
  /** A latch is counted down twice by one call. */
  'counts-twice': {
    expects: 'latch',
    kinds: ['latch'],
    wrap(store) {
      const latch = store.countDownLatch!;
      const countDown: LatchDriver['countDown'] = async (change) => {
        const { line, number } = change.operation;
        await latch.countDown({ ...change, operation: { line: `${line}!`, number } });
        return latch.countDown(change);
      };
      return changed(store, { countDownLatch: changed(latch, { countDown }) });
    },
  },
  /** A waiter of a latch is never notified that it is counted down. */
  'keeps-latches-shut': {
    expects: 'latch',
    kinds: ['latch'],
    wrap(store) {
      const latch = store.countDownLatch!;
      const look: LatchDriver['look'] = async (request) => {
        const state = await latch.look(request);
        return state?.count === 0 ? { ...state, count: 1 } : state;
      };
      return changed(store, { countDownLatch: changed(latch, { look, wakeUps: undefined }) });
    },
  },
  'hangs-when-closed': {
    expects: 'nothing left',
    kinds: ['mutex'],
    wrap: (store) => changed(store, { close: () => new Promise<void>(() => undefined) }),
  },
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
