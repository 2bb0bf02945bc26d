import { onAbort } from '../../core/util/abort.js';
import { idle } from '../../core/util/clock.js';
import { LockAbortedError, LockConfigError, LockLostError, LockTimeoutError } from '../../core/model/errors.js';
import { heldLease, runHolding } from '../../core/holding/call-chain.js';
import type { HeldLease } from '../../core/holding/held-lease.js';
import type { LockLog } from '../../core/model/lock-log.js';
import type { ResolvedOptions } from '../../core/model/options.js';
import { detached } from '../../core/util/detached.js';
import type { Locks } from '../../locks.js';
import type { LockDefinition } from '../decorators/lock-definition.js';
import type { MethodLock } from '../aspect/lock-plan.js';

/** Milliseconds until the next campaign after the store refused the request. Its configuration may have been corrected by then. */
const RETRY = 1_000;

/** The options that belong to an election and not to one of its methods. */
const SHARED = ['keyTimeout', 'retryInterval'] as const;

/** An app's candidate in one election. It is also the lock of the methods that run while the app leads. */
export class LeaderCandidate implements MethodLock {
  readonly key: string;
  private readonly said = new Map<string, { value: number; where: string }>();
  private term: HeldLease | undefined;
  private isStanding = false;

  /** @throws {LockConfigError} when the name is not a valid key. */
  constructor(
    private readonly locks: Locks,
    private readonly name: string,
    private readonly log: LockLog,
  ) {
    this.key = locks.leaderElection(name).key;
  }

  /** @throws {LockConfigError} if another method of the election has other options. */
  join({ where, options }: LockDefinition): void {
    for (const option of SHARED) {
      const value = options[option];
      const other = this.said.get(option);
      if (value === undefined || value === other?.value) continue;
      if (other || this.isStanding) {
        const why = other ? `${other.where} says ${other.value}` : 'it has begun without';
        throw new LockConfigError(`${where}: "${option}" is ${value}, but it belongs to the election "${this.name}", and ${why}.`);
      }
      this.said.set(option, { value, where });
    }
  }

  /** Campaigns until the locks are closed, also after errors. */
  stand(): void {
    if (this.isStanding) return;
    this.isStanding = true;
    // A candidate of a module that is loaded late begins during a call. It must not belong to the call chain of that call.
    void detached(() => this.campaign());
  }

  /** The lock of one call. */
  lockFor({ where, className }: LockDefinition): MethodLock {
    if (this.isStanding) return this;
    throw new LockConfigError(
      `${where}: called before the app has begun to stand for election, which it does at its bootstrap: await app.init() or app.listen() first, ` +
        `and call no method of ${className} that is for the leader only in a constructor or in onModuleInit.`,
      { key: this.key },
    );
  }

  async take({ signal }: ResolvedOptions, guardsBody: boolean): Promise<HeldLease> {
    // A minHold would delay the next leader. A maxHold would end the whole term.
    const options = { minHold: 0, signal };
    const held = heldLease(this.locks.store.mutex, this.key);
    if (held) return held.reenter(guardsBody, options);
    try {
      if (this.term) return await this.term.reenter(guardsBody, options);
    } catch (error) {
      if (!(error instanceof LockLostError)) throw error;
    }
    throw new LockTimeoutError(`This app does not lead "${this.name}".`, { key: this.key });
  }

  holding<T>(lease: HeldLease, work: () => T): T {
    return runHolding(lease, work);
  }

  private async campaign(): Promise<void> {
    const options = Object.fromEntries([...this.said].map(([option, { value }]) => [option, value]));
    const election = this.locks.leaderElection(this.name, options);
    for (;;) {
      try {
        await election.run(() => this.lead());
      } catch (error) {
        if (error instanceof LockAbortedError) return;
        const message = `This app cannot stand for election as "${this.name}", and tries again: ${String(error)}`;
        this.log.write('warn', message, { key: this.key, keys: [this.name], once: this });
        await idle(RETRY);
      }
    }
  }

  /** Resolves when the term is over or the locks are closing. The term is not released while methods still run under it. */
  private lead(): Promise<void> {
    const term = heldLease(this.locks.store.mutex, this.key) as HeldLease;
    this.term = term;
    return new Promise((resolve) => {
      onAbort(term.signal, () => {
        if (this.term === term) this.term = undefined;
        resolve();
      });
    });
  }
}
