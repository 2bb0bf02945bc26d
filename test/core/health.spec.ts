import '../support/virtual-time.js';
import { Locks, StoreError, type LockStore } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { firstTurnAfterStandingStill, pause } from '../support/time.js';

const opened: Locks[] = [];
afterEach(() => Promise.all(opened.splice(0).map((locks) => locks.close())));

/** Locks over a memory store with other answers. */
function open(verbs: Partial<LockStore['mutex']> = {}) {
  const store = memoryStore();
  const mutex = Object.assign(Object.create(store.mutex) as LockStore['mutex'], verbs);
  const locks = new Locks({ ...store, mutex }, { logger: false, shutdownTimeout: 0 });
  opened.push(locks);
  return locks;
}

describe('the health of locks', () => {
  it('counts what is held and who waits, candidates of elections apart', async () => {
    const locks = open();
    const leases = await Promise.all(['a', 'b'].map((key) => locks.acquire(key)));
    const term = await locks.acquire('name-leader');
    void locks
      .leaderElection('name')
      .run(() => undefined)
      .catch(() => undefined);
    const waits = [1000, 500].map(async (delay) => {
      await pause(1000 - delay);
      return locks.acquire('a', { waitTimeout: 60_000 });
    });
    await pause(2000);
    const { oldestWait, ...health } = await locks.health();
    expect(health).toMatchObject({ isUp: true, error: undefined, degraded: [], wakeUps: true, held: 3, waiting: 2 });
    expect(oldestWait).toBeGreaterThanOrEqual(1990);
    expect(oldestWait).toBeLessThan(2200);
    for (const lease of [...leases, term]) await lease.release();
    for (const wait of waits) await (await wait).release();
    expect(await locks.health()).toMatchObject({ held: 0, waiting: 0, oldestWait: 0 });
  });

  it('is down when the store does not answer in time, or refuses', async () => {
    const silent = open({ check: () => new Promise(() => undefined) });
    const start = performance.now();
    expect(await silent.health(200)).toMatchObject({ isUp: false, roundTrip: undefined, error: { transient: true } });
    expect(performance.now() - start).toBeLessThan(250);
    const refusing = open({ check: () => Promise.reject(new StoreError('NOPERM', { transient: false })) });
    expect(await refusing.health()).toMatchObject({ isUp: false, error: { transient: false, message: 'NOPERM' } });
  });

  it('is degraded when a renewal has been unanswered for a third of its lease, and not before', async () => {
    const away = () => [Promise.reject(new StoreError('away', { transient: true }))];
    const locks = open({ renew: away });
    await locks.acquire('key', { keyTimeout: 3000 });
    await pause(1900);
    expect(await locks.health()).toMatchObject({ isUp: true, degraded: [] });
    await pause(250);
    expect(await locks.health()).toMatchObject({ degraded: ['a renewal is unanswered for more than a third of its lease'] });
  });

  it('is not degraded by a lease that is not renewed', async () => {
    const locks = open();
    await locks.acquire('key', { keyTimeout: 3000, renew: false });
    await pause(2500);
    expect(await locks.health()).toMatchObject({ degraded: [] });
  });

  it('is degraded for a minute after the event loop was blocked', async () => {
    const locks = open();
    await locks.acquire('key', { keyTimeout: 3000 });
    await pause(100);
    await firstTurnAfterStandingStill(1500);
    expect(await locks.health()).toMatchObject({ degraded: ['the event loop was blocked within the last minute'] });
  });
});
