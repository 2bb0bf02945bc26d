import type { LockStore } from '../../../../lib/core.js';
import { partsOf } from '../../../../lib/core/model/owner.js';
import type { DatabaseServer } from '../../../support/database-process.js';
import { eventually } from '../../../support/eventually.js';
import type { Fault } from '../../faults/fault.js';
import type { Leftover, Stage } from '../store.js';
import { memberFaults } from './faults.js';

/** A member of an engine that elects a leader. */
export type Member = DatabaseServer & { leads(): Promise<boolean> };

export interface Ensemble {
  readonly members: readonly Member[];
  /** where a worker finds them; JSON */
  readonly target: unknown;
  /** as old as the run, so that it knows the age of what is left */
  readonly store: LockStore;
  /** the group of members that are killed and restarted; default: they forget nothing */
  readonly restart?: 'loss';
  /** Whether the members have a leader again, without a word of the library; default: they have at once. */
  readonly answers?: () => Promise<boolean>;
  /** besides those of members */
  readonly faults?: readonly Fault[];
}

/** Three members of an engine that elects a leader. No proxies: the faults are those of members. */
export class MembersStage implements Stage {
  readonly faults: readonly Fault[];

  constructor(private readonly ensemble: Ensemble) {
    this.faults = [...memberFaults(ensemble.restart ?? 'restart'), ...(ensemble.faults ?? [])];
  }

  get members(): readonly DatabaseServer[] {
    return this.ensemble.members;
  }

  target(_slot: number): unknown {
    return this.ensemble.target;
  }

  /** The member that leads; any, if there is none. */
  async leader(): Promise<DatabaseServer> {
    const { members } = this.ensemble;
    for (const member of members) if (await member.leads()) return member;
    return members[0]!;
  }

  /** A fault is over when the members can be asked again: an election may take seconds. */
  async recovered(): Promise<void> {
    const { answers } = this.ensemble;
    if (answers) await eventually(() => answers().catch(() => false), { within: 30_000, every: 50 });
  }

  async heal(): Promise<void> {
    for (const member of this.members) member.resume();
  }

  async leftovers(pidsOfKilled: ReadonlySet<number>): Promise<Leftover[]> {
    const { inspector } = this.ensemble.store;
    const left: Leftover[] = [];
    for await (const keys of inspector!.keys('', true)) {
      for (const { key, holders, waiters } of await inspector!.inspect(keys)) {
        if (holders.length > 0) left.push({ key, what: `${key}: held: ${JSON.stringify(holders)}` });
        const owners = waiters.map(({ owner }) => owner).filter((owner) => !pidsOfKilled.has(partsOf(owner)?.pid ?? 0));
        if (owners.length > 0) left.push({ key, what: `${key}: queue entries of live processes: ${owners.join(' ')}`, owners });
      }
    }
    return left;
  }

  async stop(): Promise<void> {
    await this.ensemble.store.close();
    await Promise.all(this.members.map((member) => member.stop()));
  }
}
