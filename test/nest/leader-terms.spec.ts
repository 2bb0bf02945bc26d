import { mayTake } from '../support/virtual-time.js';
import type { Server } from 'node:http';
import { from, lastValueFrom, map, type Observable, tap } from 'rxjs';
import { currentLease, type LockStore } from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { standStill } from '../support/time.js';
import { bootJobs, bootLeader, candidatesAt, type Jobs, KEY, leads } from './leaders.js';
import { candidate, openLocks, serverOf } from './standby-apps.js';

const STRANGER = { key: KEY, owner: 'stranger' };

/** Gives the key to a stranger, and lets the leader know. */
async function depose({ lease }: Jobs, { mutex }: LockStore): Promise<void> {
  await mutex.release({ key: KEY, owner: lease?.owner ?? '', keepFor: 0 });
  expect(await mutex.acquire({ ...STRANGER, ttl: 60_000, tokens: 1, queue: false })).toMatchObject({ granted: true });
  await lease?.renew().catch(() => undefined);
}

/** A leader with a method under way. */
async function working(method: 'work' | 'workOn' = 'work') {
  const booted = await bootLeader();
  const { jobs, store } = booted;
  const call = jobs[method]().catch((error: unknown) => error);
  await eventually(() => jobs.gate.arrived === 1);
  return { ...booted, call, depose: () => depose(jobs, store) };
}

describe('a term that is lost', () => {
  it('aborts the signal of the methods that run, and rejects what succeeds all the same', async () => {
    const { jobs, call, depose: lose } = await working();
    expect(jobs.lease?.signal.aborted).toBe(false);
    await lose();
    expect([jobs.lease?.signal.aborted, jobs.lease?.remaining()]).toEqual([true, 0]);
    jobs.run = async () => 'ended';
    jobs.gate.open();
    const message = expect.stringMatching(/^Jobs\.work: /);
    expect(await call).toMatchObject({ name: 'LockLostError', message, result: 'worked and ended' });
  });

  it.each<[string, (jobs: Jobs) => Observable<unknown>]>([
    ['an Observable', (jobs) => jobs.watch(from(jobs.gate.pass()).pipe(map(() => 'watched')))],
    ['an iterable', (jobs) => from(jobs.slowRows())],
  ])('gives %s that is open its values, and an error at its end', async (_what, streamOf) => {
    const { jobs, store } = await bootLeader();
    const items: unknown[] = [];
    const end = lastValueFrom(streamOf(jobs).pipe(tap((item) => items.push(item)))).catch((error: unknown) => error);
    await eventually(() => jobs.gate.arrived === 1 && jobs.lease !== undefined);
    await depose(jobs, store);
    expect(jobs.lease?.signal.aborted).toBe(true);
    jobs.gate.open();
    expect(await end).toMatchObject({ name: 'LockLostError' });
    expect(items).toHaveLength(1);
  });

  it("passes the result with onLost: 'ignore'", async () => {
    const { jobs, call, depose: lose } = await working('workOn');
    await lose();
    jobs.gate.open();
    expect(await call).toBe('worked on');
  });

  it('rejects a call that a running method makes, and skips others until the app is elected again, with a larger token', async () => {
    const { jobs, store, call, depose: lose } = await working();
    const before = jobs.lease?.fencingToken ?? 0;
    await lose();
    jobs.gate.open();
    expect(await call).toMatchObject({ name: 'LockLostError', result: undefined });
    expect([await jobs.run(), jobs.calls]).toEqual([undefined, 0]);
    await store.mutex.release({ ...STRANGER, keepFor: 0 });
    await leads(jobs);
    expect(await jobs.run(() => currentLease()?.fencingToken)).toBeGreaterThan(before);
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

it('a leader that closes steps down, lets its methods end undisturbed, and is succeeded after them; nobody leaves anything behind', async () => {
  const { app, store, jobs, call } = await working();
  const [standby, third] = [await bootJobs(store), await bootJobs(store)];
  await eventually(() => expect(candidatesAt(store)).toEqual([KEY, KEY, KEY]));
  await third.app.close();
  expect(candidatesAt(store)).toEqual([KEY, KEY]);
  let isClosed = false;
  const closing = app.close().then(() => (isClosed = true));
  await eventually(async () => (await jobs.run()) === undefined);
  expect([jobs.lease?.signal.aborted, await standby.jobs.run(), isClosed]).toEqual([false, undefined, false]);
  jobs.gate.open();
  expect(await call).toBe('worked and ran');
  await closing;
  await leads(standby.jobs);
  expect(await jobs.run()).toBeUndefined();
  await standby.app.close();
  expect(candidatesAt(store)).toEqual([]);
});

it('a standby stops listening on the first turn after its event loop stood still for longer than its lease', async () => {
  // While it begins to listen, any time may pass.
  mayTake(Infinity);
  let listens!: (server: Server) => void;
  const listening = new Promise<Server>((resolve) => (listens = resolve));
  candidate(openLocks(), {
    async start(app) {
      await app.listen(0, '127.0.0.1');
      listens(serverOf(app));
    },
  });
  const server = await listening;
  expect(server.listening).toBe(true);
  standStill(90_000); // nothing can renew
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  expect(server.listening).toBe(false);
});
