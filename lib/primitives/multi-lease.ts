import type { HeldLease } from '../core/holding/held-lease.js';
import { LockLostError } from '../core/model/errors.js';
import type { MultiLease } from '../core/model/lease.js';
import { onAbort } from '../core/util/abort.js';
import type { LosableLease } from './lock.js';

/** The leases of a {@link MultiLock}. */
export class HeldLeases implements MultiLease, LosableLease {
  private controller: AbortController | undefined;
  private stopListening: readonly (() => void)[] = [];

  constructor(readonly leases: readonly HeldLease[]) {}

  get key(): string {
    return this.leases.map(({ key }) => key).join(', ');
  }

  get owner(): string {
    return this.leases.map(({ owner }) => owner).join(', ');
  }

  get fencingToken(): number | null {
    return this.single?.fencingToken ?? null;
  }

  get signal(): AbortSignal {
    if (this.single) return this.single.signal;
    if (this.controller) return this.controller.signal;
    // Not AbortSignal.any: up to Node 22 a signal with a listener stays in memory.
    const controller = (this.controller = new AbortController());
    const lost = this.leases.find(({ signal }) => signal.aborted);
    if (lost) controller.abort(lost.signal.reason);
    else this.stopListening = this.leases.map(({ signal }) => onAbort(signal, () => controller.abort(signal.reason)));
    return controller.signal;
  }

  get loss(): unknown {
    return this.leases.find(({ loss }) => loss !== undefined)?.loss;
  }

  remaining(): number {
    return Math.min(...this.leases.map((lease) => lease.remaining()));
  }

  assertHeld(): void {
    for (const lease of this.leases) lease.assertHeld();
  }

  async renew(keyTimeout?: number): Promise<void> {
    const outcomes = await Promise.allSettled(this.leases.map((lease) => lease.renew(keyTimeout)));
    const errors = outcomes.filter((outcome) => outcome.status === 'rejected').map(({ reason }) => reason as unknown);
    if (errors.length > 0) throw errors.find((error) => error instanceof LockLostError) ?? errors[0];
  }

  handOver(options: { within: number }): Promise<string> {
    return this.leases[0]!.handOver(options);
  }

  async release(): Promise<boolean> {
    const answers = await Promise.all(this.leases.map((lease) => lease.release()));
    for (const stop of this.stopListening) stop();
    return answers.every((wasOurs) => wasOurs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  private get single(): HeldLease | undefined {
    return this.leases.length === 1 ? this.leases[0] : undefined;
  }
}
