import { now } from '../core/util/clock.js';
import { detached } from '../core/util/detached.js';

/** Milliseconds. */
const FRESH = 2_000;
/** The part of the time that making it may take. */
const SHARE = 1 / 20;

/** Something that is made for all who ask, when somebody does and the last one is too old. Nobody asks: nothing is made. */
export class Shared {
  private making: Promise<void> | undefined;
  private dueAt = 0;

  /** @param make resolves to the milliseconds that it has cost. It does not reject. */
  constructor(private readonly make: () => Promise<number>) {}

  /** Resolves when it is fresh enough. */
  get(): Promise<void> {
    if (now() < this.dueAt) return this.making ?? Promise.resolve();
    // What is made outlives the request that began it.
    return (this.making ??= detached(async () => {
      const start = now();
      const cost = await this.make();
      this.dueAt = Math.max(start + FRESH, now() + cost / SHARE);
      this.making = undefined;
    }));
  }
}
