import { Injectable } from '@nestjs/common';
import { from, lastValueFrom, map, Observable, tap } from 'rxjs';
import { currentLease, LeaderOnly, type Lease, type LockStore } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { boot } from './boot.js';
import { Gate } from '../support/gate.js';
import { candidatesAt } from './leaders.js';

const KEY = 'jobs-leader';

@Injectable()
class Jobs {
  gate = new Gate();
  lease: Lease | undefined;

  @LeaderOnly('jobs', { keyTimeout: 60_000, retryInterval: 20 })
  async run() {
    return currentLease()?.fencingToken;
  }
  @LeaderOnly('jobs')
  async work() {
    this.lease = currentLease();
    await this.gate.pass();
    return `worked ${typeof (await this.run())}`;
  }
  @LeaderOnly('jobs')
  watch(): Observable<string> {
    this.lease = currentLease();
    return from(this.gate.pass()).pipe(map(() => 'watched'));
  }
  @LeaderOnly('jobs')
  async *rows() {
    this.lease = currentLease();
    await this.gate.pass();
    yield 'row';
  }
  @LeaderOnly('jobs', { onLost: 'ignore' })
  async workOn() {
    this.lease = currentLease();
    await this.gate.pass();
    return 'worked on';
  }
}

async function bootJobs(store: LockStore = memoryStore()) {
  const booted = await boot({ providers: [Jobs] }, { store });
  return { ...booted, jobs: booted.get(Jobs) };
}
const leads = (jobs: Jobs) => eventually(async () => typeof (await jobs.run()) === 'number');

/** A leader with a method under way. */
async function working(method: 'work' | 'workOn' = 'work') {
  const booted = await bootJobs();
  const { jobs, store } = booted;
  await leads(jobs);
  const call = jobs[method]().catch((error: unknown) => error);
  await eventually(() => jobs.gate.arrived === 1);
  return { ...booted, call, depose: () => depose(jobs, store) };
}

/** Gives the key to a stranger, and lets the leader know. */
async function depose(jobs: Jobs, store: LockStore) {
  const { owner = '' } = jobs.lease ?? {};
  await store.mutex.release({ key: KEY, owner, keepFor: 0 });
  const stranger = { key: KEY, owner: 'stranger', ttl: 60_000, tokens: 1, queue: false };
  expect(await store.mutex.acquire(stranger)).toMatchObject({ granted: true });
  await jobs.lease?.renew().catch(() => undefined);
  return () => store.mutex.release({ key: KEY, owner: 'stranger', keepFor: 0 });
}

describe('a term that is lost', () => {
  it('aborts the signal of the methods that run, and rejects what succeeds all the same', async () => {
    const { jobs, call, depose } = await working();
    expect(jobs.lease?.signal.aborted).toBe(false);
    await depose();
    expect(jobs.lease?.signal.aborted).toBe(true);
    expect(jobs.lease?.remaining()).toBe(0);
    jobs.run = async () => 1;
    jobs.gate.open();
    expect(await call).toMatchObject({ name: 'LockLostError', result: 'worked number' });
  });

  it.each([
    ['an Observable', (jobs: Jobs) => jobs.watch()],
    ['an iterable', (jobs: Jobs) => from(jobs.rows())],
  ])('gives %s that is open its values, and an error at its end', async (_what, streamOf) => {
    const { jobs, store } = await bootJobs();
    await leads(jobs);
    const items: string[] = [];
    const end = lastValueFrom(streamOf(jobs).pipe(tap((item) => items.push(item)))).catch((error: unknown) => error);
    await eventually(() => jobs.gate.arrived === 1);
    await depose(jobs, store);
    expect(jobs.lease?.signal.aborted).toBe(true);
    jobs.gate.open();
    expect(await end).toMatchObject({ name: 'LockLostError' });
    expect(items.length).toBe(1);
  });

  it("passes the result with onLost: 'ignore'", async () => {
    const { jobs, call, depose } = await working('workOn');
    await depose();
    jobs.gate.open();
    expect(await call).toBe('worked on');
  });

  it('rejects a call that a running method makes', async () => {
    const { jobs, call, depose } = await working();
    await depose();
    jobs.gate.open();
    expect(await call).toMatchObject({ name: 'LockLostError', result: undefined });
  });

  it('skips calls until the app is elected again, with a larger token', async () => {
    const { jobs, call, depose } = await working();
    const before = jobs.lease?.fencingToken ?? 0;
    const restore = await depose();
    expect(await jobs.run()).toBeUndefined();
    expect(jobs.gate.arrived).toBe(1);
    await restore();
    await leads(jobs);
    expect(await jobs.run()).toBeGreaterThan(before);
    jobs.gate.open();
    await call;
  });

  it('skips calls as soon as its lease has run out, though nobody has noticed yet', async () => {
    const { jobs, call } = await working('workOn');
    const { tenure } = (jobs.lease as unknown as { turn: { tenure: { validUntil: number } } }).turn;
    tenure.validUntil = 0;
    expect(await jobs.run()).toBeUndefined();
    jobs.gate.open();
    await call;
  });
});

describe('a leader that closes', () => {
  it('leads no more, lets its methods end undisturbed, and is succeeded after them', async () => {
    const { app, store, jobs, call } = await working();
    const standby = await bootJobs(store);
    await eventually(() => expect(candidatesAt(store)).toEqual([KEY, KEY]));
    let isClosed = false;
    const closing = app.close().then(() => (isClosed = true));
    await eventually(async () => (await jobs.run()) === undefined);
    expect([jobs.lease?.signal.aborted, await standby.jobs.run(), isClosed]).toEqual([false, undefined, false]);
    jobs.gate.open();
    expect(await call).toBe('worked number');
    await closing;
    await leads(standby.jobs);
    expect(await jobs.run()).toBeUndefined();
  });

  it('leaves nothing behind, nor does a standby', async () => {
    const first = await bootJobs();
    await leads(first.jobs);
    const second = await bootJobs(first.store);
    await eventually(() => expect(candidatesAt(first.store)).toEqual([KEY, KEY]));
    await second.app.close();
    expect(candidatesAt(first.store)).toEqual([KEY]);
    expect(typeof (await first.jobs.run())).toBe('number');
    await first.app.close();
    expect(candidatesAt(first.store)).toEqual([]);
  });
});
