import type { Bus, Inspector } from './inspector.js';
import type { LeaseDriver } from './lease-driver.js';
import type { LatchDriver } from './latch-driver.js';

/** A backend, such as `redisStore()` or `memoryStore()`. It has a driver for each kind of lock that it supports. */
export interface LockStore {
  /** For messages: `'redis'`, `'memory'`… */
  readonly name: string;
  /** Milliseconds within which each request is answered or rejected. */
  readonly requestTimeout: number;
  readonly mutex: LeaseDriver;
  readonly readWriteLock?: Readonly<Record<'read' | 'write', LeaseDriver>>;
  readonly semaphore?: LeaseDriver;
  readonly countDownLatch?: LatchDriver;
  /** Shows and frees keys, for operators. */
  readonly inspector?: Inspector;
  /** Without it, an operator sees what the store knows only. */
  readonly bus?: Bus;
  /** Closes what the store has opened. A client that the user passed in stays open. */
  close(): Promise<void>;
}
