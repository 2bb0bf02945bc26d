// A user's unit test: a plain object stands for the locks. Only the published types allow it, so the types of the repository leave this file out.
import type { Locks } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { fake as lease } from './consumer.js';

const unused = (): never => {
  throw new Error('unused');
};
export const fake: Locks = {
  store: memoryStore(),
  mutex: unused,
  readWriteLock: unused,
  semaphore: unused,
  countDownLatch: unused,
  leaderElection: unused,
  multiLock: unused,
  acquire: async () => lease,
  tryAcquire: async () => lease,
  adopt: async () => lease,
  using: async (_key, work) => work(lease),
  keyOf: unused,
  inspect: unused,
  list: unused,
  watch: unused,
  forceRelease: unused,
  waitGraph: () => [],
  doctor: unused,
  health: unused,
  checkStore: async () => undefined,
  on: () => () => undefined,
  stopWaiting: () => undefined,
  close: async () => undefined,
};
