import { Locks, type LockStore, type WakeUps } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { pause } from '../support/time.js';

/** An inbox that is opened by the test, or never. */
class Inbox implements WakeUps {
  isOpen = false;
  readonly listeners = new Map<string, () => void>();

  open(): Promise<void> {
    return new Promise(() => undefined);
  }

  listen(owner: string, wake: () => void): () => void {
    this.listeners.set(owner, wake);
    return () => void this.listeners.delete(owner);
  }

  succeed(): void {
    this.isOpen = true;
    for (const wake of [...this.listeners.values()]) wake();
  }
}

/** What every store must do is in test/contract; here is what no real one does on request. */
describe('a candidate whose inbox does not open', () => {
  let inbox: Inbox;
  let ruler: Locks;
  let locks: Locks;
  const asked: string[] = [];

  beforeEach(() => {
    inbox = new Inbox();
    asked.length = 0;
    const real = memoryStore();
    const { mutex } = real;
    const store: LockStore = {
      ...real,
      mutex: {
        placeLifetime: mutex.placeLifetime,
        acquire(request) {
          asked.push(request.owner);
          return mutex.acquire(request);
        },
        renew: (batch) => mutex.renew(batch),
        release: (request) => mutex.release(request),
        leave: (tenancy) => mutex.leave(tenancy),
        check: (tenancy) => mutex.check(tenancy),
        wakeUps: inbox,
      },
    };
    ruler = new Locks(real, { logger: false });
    locks = new Locks(store, { logger: false });
  });
  afterEach(() => Promise.all([locks.close(), ruler.close()]));

  it('asks until it opens, has the same place then, and rests there; it leaves no listener behind (G7)', async () => {
    const lease = await ruler.acquire('shop-leader', { keyTimeout: 60_000 });
    const work = jest.fn();
    const running = locks.leaderElection('shop', { retryInterval: 10_000 }).run(work);
    await eventually(() => asked.length > 3);
    inbox.succeed();
    await eventually(() => inbox.isOpen);
    const before = asked.length;
    await pause(500);
    expect(asked).toHaveLength(before);
    expect(new Set(asked).size).toBe(1);
    await lease.release();
    inbox.succeed();
    await running;
    expect(work).toHaveBeenCalledTimes(1);
    await eventually(() => inbox.listeners.size === 0);
  });

  it('can be called off while it waits for that', async () => {
    const lease = await ruler.acquire('shop-leader', { keyTimeout: 60_000 });
    const election = locks.leaderElection('shop');
    const work = jest.fn();
    const running = election.run(work);
    await eventually(() => asked.length > 3);
    const start = performance.now();
    await election.resign();
    expect(performance.now() - start).toBeLessThan(500);
    expect(await running).toBeUndefined();
    expect(work).not.toHaveBeenCalled();
    await lease.release();
    expect(await ruler.tryAcquire('shop-leader')).not.toBeNull();
  });
});
