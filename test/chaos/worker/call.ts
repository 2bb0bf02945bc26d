import type { Lease, MultiLease } from '../../../lib/core.js';
import { now } from '../history/clock.js';
import type { Asked, Outcome } from '../history/entry.js';
import type { Context } from './context.js';
import { describe, outcomeOf } from './outcome.js';

export type Question = Omit<Asked, 'e' | 'id' | 'chain'> & { chain?: string };
type AnyLease = Lease | MultiLease;

/** One call for a lease, and what the history says of it. */
export class Call {
  readonly id: string;
  readonly chain: string;
  readonly keys: readonly string[];
  private leases: readonly Lease[] = [];
  private state: 'asked' | 'granted' | 'releasing' | 'over' = 'asked';

  constructor(
    private readonly context: Context,
    question: Question,
  ) {
    this.id = context.nextId();
    this.chain = question.chain ?? this.id;
    this.keys = question.keys;
    context.history.write({ e: 'asked', ...question, id: this.id, chain: this.chain });
  }

  granted(lease: AnyLease): void {
    const t = now();
    this.leases = 'leases' in lease ? lease.leases : [lease];
    const seen = this.leases.map((each, i) => ({
      key: this.keys[i]!,
      token: each.fencingToken,
      owner: each.owner,
      remaining: each.remaining(),
    }));
    this.state = 'granted';
    this.context.history.write({ e: 'granted', id: this.id, leases: seen }, t);
    const { signal } = lease;
    const told = (): void => {
      if (this.state === 'granted') this.context.history.write({ e: 'signal', id: this.id, reason: describe(signal.reason) });
    };
    if (signal.aborted) told();
    else signal.addEventListener('abort', told, { once: true });
  }

  claim(): void {
    const t = now();
    this.context.history.write({ e: 'claim', id: this.id, remaining: this.leases.map((lease) => lease.remaining()) }, t);
  }

  aborting(): void {
    if (this.state === 'asked') this.context.history.write({ e: 'aborting', id: this.id });
  }

  /** The last moment at which the caller counts on its lease. */
  releasing(): void {
    this.context.history.write({ e: 'releasing', id: this.id });
    this.state = 'releasing';
  }

  released(ours: boolean): void {
    this.state = 'over';
    this.context.history.write({ e: 'released', id: this.id, ours });
  }

  /** Without an error: `timeout` of a single try that found the key taken, `resigned` of a caller who does not ask any more. */
  ended(outcome: Outcome, error = ''): void {
    this.state = 'over';
    this.context.history.write({ e: 'ended', id: this.id, outcome, error });
  }

  /** The call rejected, before or after its body ran. */
  failed(error: unknown): void {
    const outcome = outcomeOf(error);
    if (this.state !== 'asked' && outcome === 'lost') return this.released(false);
    this.ended(outcome, describe(error));
  }
}
