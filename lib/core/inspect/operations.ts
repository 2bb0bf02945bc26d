import type { ForceOptions, ForceReply, KeyReport, ListOptions } from '../model/key-report.js';
import type { Deadlock } from './wait-graph.js';

/** What an operator may ask of the locks of a store. Keys are those of `mutex`, or with the namespace, as in reports, errors and events. */
export interface Operations {
  /**
   * What the store knows of a key, and what the processes tell that use it: who holds it and since when, doing what, and who waits. It changes nothing.
   * Processes that have never waited, and those that hang, tell nothing; the report then has what the store knows.
   *
   * @throws {StoreError} when the store does not answer.
   * @throws {UnsupportedPrimitiveError} when the store cannot be inspected.
   */
  inspect(key: string): Promise<KeyReport>;

  /**
   * Looks for the keys that are held or waited for: those that were used within the last hour. For a look: it reads the names of all keys of the store,
   * a thousand at a time.
   *
   * @throws as {@link inspect}; {@link LockAbortedError} when `signal` aborts.
   */
  list(options?: ListOptions): AsyncIterable<KeyReport>;

  /**
   * Frees a key that is stuck. The holder's signal aborts, and it has `grace` milliseconds to end its work: until then nobody else gets the key. Then
   * it is taken by force, also from a process that is silent for a second; the next waiter may be at work before the old holder has stopped, whose
   * writes only a fencing token keeps out.
   *
   * @throws as {@link inspect}; {@link LockConfigError} when several hold the key and no `owner` is given, or when no lock has written what is there.
   * @throws {UnsupportedPrimitiveError} for a count-down latch.
   */
  forceRelease(key: string, options: ForceOptions): Promise<ForceReply>;

  /** The deadlocks among keys, as the function `waitGraph` finds them. */
  waitGraph(reports: Iterable<KeyReport>): Deadlock[];
}
