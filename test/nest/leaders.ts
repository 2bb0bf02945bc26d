import { Injectable } from '@nestjs/common';
import { Observable, of } from 'rxjs';
import { currentLease, LeaderOnly, type Lease, type LockStore } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { Gate } from '../support/gate.js';
import { rowsOf } from '../stores/memory/setting.js';
import { boot } from './boot.js';

export const KEY = 'jobs-leader';

/** The keys of all who hold or wait at this memory store: one for each leader and each standby. */
export function candidatesAt(store: LockStore): string[] {
  const leases = [...rowsOf(store)].flatMap(([key, { record }]) => (record && 'holds' in record ? [{ key, record }] : []));
  return leases.flatMap(({ key, record }) => [...record.holds, ...record.queue].map(() => key)).sort();
}

/** What only the leader does. */
@Injectable()
export class Jobs {
  readonly gate = new Gate();
  calls = 0;
  lease: Lease | undefined;

  @LeaderOnly('jobs', { keyTimeout: 60_000 })
  async run(body: () => unknown = () => 'ran') {
    this.calls++;
    return body();
  }
  @LeaderOnly('jobs')
  watch(items: Observable<unknown> = of(1, 2)): Observable<unknown> {
    this.calls++;
    this.lease = currentLease();
    return items;
  }
  @LeaderOnly('jobs')
  async *rows(): AsyncGenerator {
    this.calls++;
    yield 1;
    yield 2;
  }
  @LeaderOnly('jobs')
  async *slowRows() {
    this.lease = currentLease();
    await this.gate.pass();
    yield 'row';
  }
  @LeaderOnly('jobs')
  async work() {
    this.lease = currentLease();
    await this.gate.pass();
    return `worked and ${String(await this.run())}`;
  }
  @LeaderOnly('jobs', { onLost: 'ignore' })
  async workOn() {
    this.lease = currentLease();
    await this.gate.pass();
    return 'worked on';
  }
}

export const leads = (jobs: Jobs) => eventually(async () => (await jobs.run()) === 'ran');

export async function bootJobs(store: LockStore = memoryStore()) {
  const booted = await boot({ providers: [Jobs] }, { store });
  return { ...booted, jobs: booted.get(Jobs) };
}

/** An app that leads, with its jobs. */
export async function bootLeader() {
  const booted = await bootJobs();
  await leads(booted.jobs);
  booted.jobs.calls = 0;
  return booted;
}
