import { detached } from '../../core/util/detached.js';
import type { Locks } from '../../locks.js';

/** Asks each store of the app once when it starts, and logs what it is, or why it cannot be reached. */
export class StoreChecks {
  private readonly checks: { readonly check: () => Promise<void>; readonly failFast: boolean }[] = [];

  /** @param name `undefined`: the app has one store. */
  add(locks: Locks, name: string | undefined, failFast: boolean): void {
    this.checks.push({ check: () => locks.checkStore(name), failFast });
  }

  /**
   * Resolves at once, unless a store is to `failFast`.
   *
   * @throws {StoreError} of the first such store that does not answer.
   */
  async run(): Promise<void> {
    const awaited: Promise<void>[] = [];
    for (const { check, failFast } of this.checks.splice(0)) {
      const outcome = detached(check);
      outcome.catch(() => undefined);
      if (failFast) awaited.push(outcome);
    }
    await Promise.all(awaited);
  }
}
