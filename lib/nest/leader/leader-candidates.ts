import { onAbort } from '../../core/util/abort.js';
import { idle } from '../../core/util/clock.js';
import { configError, LockAbortedError, LockLostError, LockTimeoutError } from '../../core/model/errors.js';
import { heldLease, runHolding } from '../../core/holding/call-chain.js';
import type { HeldLease } from '../../core/holding/held-lease.js';
import type { LockLog } from '../../core/model/lock-log.js';
import type { ResolvedOptions } from '../../core/model/options.js';
import { detached } from '../../core/util/detached.js';
import type { Locks } from '../../locks.js';
import { completeDefaults, naming, type LockPlan, type MethodLock, type Registered } from '../aspect/lock-plan.js';
import type { LockDefinition } from '../decorators/lock-definition.js';

/** Milliseconds until the next campaign after the store refused the request. Its configuration may have been corrected by then. */
const RETRY = 1_000;

/** The options that belong to an election and not to one of its methods. */
const SHARED = ['keyTimeout', 'retryInterval'] as const;

/** An app's candidates: one for each pair of election and store that its methods use. They campaign from bootstrap to shutdown. */
export class LeaderCandidates {
  private readonly candidates: LeaderCandidate[] = [];
  private isBegun = false;

  /**
   * The plan of a method that only the leader runs. Other instances skip it.
   *
   * @throws {LockConfigError} if the name is not a valid key, or methods of one election differ in its options.
   */
  planFor(definition: LockDefinition, registered: Registered): LockPlan {
    const { where, options, returns, className, method } = definition;
    const complete = completeDefaults(registered);
    const { label = `${className}.${String(method)}` } = complete;
    const candidate = naming(where, () => this.candidateFor(definition, registered));
    return {
      options: { ...complete, label, onLost: options.onLost ?? complete.onLost, onTimeout: 'skip' },
      returns: returns ?? registered.options.defaults?.returns ?? 'promise',
      log: registered.log,
      name: candidate.key,
      key: candidate.key,
      parts: false,
      keyOf: () => candidate.key,
      lockOf: () => candidate.lockFor(definition),
    };
  }

  campaign(): void {
    this.isBegun = true;
    for (const candidate of this.candidates) candidate.begin();
  }

  private candidateFor(definition: LockDefinition, { locks, log }: Registered): LeaderCandidate {
    const { election = '' } = definition;
    const known = this.candidates.find((each) => each.locks === locks && each.name === election);
    const candidate = known ?? new LeaderCandidate(locks, election, log);
    candidate.join(definition);
    if (!known) this.candidates.push(candidate);
    // The module of this method was loaded after the bootstrap.
    if (this.isBegun) candidate.begin();
    return candidate;
  }
}

/** An app's candidate in one election. It is also the lock of the methods that run while the app leads. */
class LeaderCandidate implements MethodLock {
  readonly key: string;
  private readonly given = new Map<string, { value: number; where: string }>();
  private readonly methods: string[] = [];
  private term: HeldLease | undefined;
  private isBegun = false;

  /** @throws {LockConfigError} when the name is not a valid key. */
  constructor(
    readonly locks: Locks,
    readonly name: string,
    private readonly log: LockLog,
  ) {
    this.key = locks.leaderElection(name).key;
  }

  /** @throws {LockConfigError} if another method of the election has other options. */
  join({ where, options, className, method }: LockDefinition): void {
    for (const option of SHARED) {
      const value = options[option];
      const other = this.given.get(option);
      if (value === undefined || value === other?.value) continue;
      if (other || this.isBegun) {
        const why = other ? `${other.where} says ${other.value}` : 'it has begun without';
        throw configError('OPTION', `${where}: "${option}" is ${value}, but it belongs to the election "${this.name}", and ${why}.`);
      }
      this.given.set(option, { value, where });
    }
    this.methods.push(`${className}.${String(method)}`);
  }

  /** Campaigns until the locks are closed, also after errors. */
  begin(): void {
    if (this.isBegun) return;
    this.isBegun = true;
    // A candidate of a module that is loaded late begins during a call. It must not belong to the call chain of that call.
    void detached(() => this.campaign());
  }

  /** The lock of one call. */
  lockFor({ where, className }: LockDefinition): MethodLock {
    if (this.isBegun) return this;
    throw configError(
      'CALL',
      `${where}: called before the app campaigns, which it does from its bootstrap on: await app.init() or app.listen() first, ` +
        `and call no method of ${className} that is for the leader only in a constructor or in onModuleInit.`,
      { key: this.key },
    );
  }

  async take({ signal }: ResolvedOptions, guardsBody: boolean): Promise<HeldLease> {
    // A minHold would delay the next leader. A maxHold would end the whole term.
    const options = { minHold: 0, signal };
    const held = this.heldHere();
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
    const { locks, key, name, log } = this;
    const options = Object.fromEntries([...this.given].map(([option, { value }]) => [option, value]));
    const election = locks.leaderElection(name, options);
    if (this.methods.length === 1) election.label = this.methods[0]!;
    for (;;) {
      try {
        await election.run(() => this.lead());
      } catch (error) {
        if (error instanceof LockAbortedError) return;
        const message = `The campaign of this app for "${name}" was refused, and begins again: ${String(error)}`;
        log.warn('NDL_CAMPAIGN', message, { key, once: this });
        await idle(RETRY);
      }
    }
  }

  /** Resolves when the term is over or the locks are closing. The term is not released while methods still run under it. */
  private lead(): Promise<void> {
    const term = this.heldHere() as HeldLease;
    this.term = term;
    return new Promise((resolve) => {
      onAbort(term.signal, () => {
        if (this.term === term) this.term = undefined;
        resolve();
      });
    });
  }

  private heldHere(): HeldLease | undefined {
    return heldLease(this.locks.store.mutex, this.key);
  }
}
