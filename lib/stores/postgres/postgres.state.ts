import type { StateListener } from '../../core/store/lock-store.js';
import { idle, now } from '../../core/util/clock.js';
import { isConflict, storeErrorOf, textOf } from './postgres.errors.js';

/** Milliseconds between two questions to a server that is away. */
const PAUSE = 500;

/** Whether Postgres answers, by what becomes of requests. Only after one that failed the server is asked, until it answers. */
export class PostgresState {
  private readonly listeners = new Set<StateListener>();
  /** Since when it is away. */
  private since: number | undefined;

  constructor(private readonly ask: () => Promise<unknown>) {}

  /** The returned function stops. */
  watch(listener: StateListener): () => void {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) this.since = undefined;
    };
  }

  answered(): void {
    if (this.since === undefined) return;
    this.since = undefined;
    for (const listener of this.listeners) listener(undefined, 0);
  }

  failed(cause: unknown): void {
    // A refusal is an answer, too.
    if (this.listeners.size === 0 || this.since !== undefined || isConflict(cause) || !storeErrorOf(cause).transient) return;
    const since = (this.since = now());
    void this.follow(since, textOf(cause));
  }

  private async follow(since: number, reason: string): Promise<void> {
    // A connection that broke and another one in its place are no outage.
    for (let isSaid = false; this.since === since; isSaid = true) {
      const isAway = await this.ask().then(
        () => false,
        (cause: unknown) => storeErrorOf(cause).transient,
      );
      if (this.since !== since) return;
      if (!isAway) return this.answered();
      if (!isSaid) for (const listener of this.listeners) listener(reason, now() - since);
      await idle(PAUSE);
    }
  }
}
