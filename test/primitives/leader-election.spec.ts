import { Locks, type LockStore, type WakeUps } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';

/** An inbox that is opened by the test, or never. */
class Inbox implements WakeUps {
  isOpen = false;
  readonly listeners = new Map<string, () => void>();
  private opened: (() => void)[] = [];

  open(): Promise<void> {
    return new Promise((resolve) => this.opened.push(resolve));
  }

  listen(owner: string, wake: () => void): () => void {
    this.listeners.set(owner, wake);
    return () => void this.listeners.delete(owner);
  }

  /** It cannot open for now. */
  fail(): void {
    for (const resolve of this.opened) resolve();
  }

  succeed(): void {
    this.isOpen = true;
    this.fail();
    for (const wake of [...this.listeners.values()]) wake();
  }
}

/** What every store must do is in test/contract; here is what no real one does on request. */
describe('a candidate whose inbox does not open', () => {
  let inbox: Inbox;
  let store: LockStore;
  let locks: Locks;
  const places: string[] = [];

  beforeEach(() => {
    inbox = new Inbox();
    places.length = 0;
    const real = memoryStore();
    const { mutex } = real;
    store = {
      ...real,
      mutex: {
        acquire(request) {
          if (request.queue && !places.includes(request.owner)) places.push(request.owner);
          return mutex.acquire(request);
        },
        renew: (batch) => mutex.renew(batch),
        release: (request) => mutex.release(request),
        leave: (tenancy) => mutex.leave(tenancy),
        check: (tenancy) => mutex.check(tenancy),
        wakeUps: inbox,
      },
    };
    locks = new Locks(store, { logger: false });
  });
  afterEach(() => locks.close());

  it('is elected all the same, a second later at most', async () => {
    const start = performance.now();
    expect(await locks.leaderElection('shop').run(() => 'led')).toBe('led');
    expect(performance.now() - start).toBeGreaterThan(900);
  });

  it('is elected at once where it is clear that it will not open', async () => {
    const start = performance.now();
    const led = locks.leaderElection('shop').run(() => 'led');
    inbox.fail();
    expect(await led).toBe('led');
    expect(performance.now() - start).toBeLessThan(500);
  });

  it('leaves no timer behind when it opens after all (G7)', async () => {
    const timers = (): number => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
    const before = timers();
    const led = locks.leaderElection('shop').run(() => 'led');
    expect(timers()).toBeGreaterThan(before);
    inbox.succeed();
    await led;
    expect(timers()).toBeLessThanOrEqual(before);
  });

  it('can be called off while it waits for that', async () => {
    const election = locks.leaderElection('shop');
    const work = jest.fn();
    const running = election.run(work);
    const start = performance.now();
    await election.resign();
    expect(performance.now() - start).toBeLessThan(500);
    expect(await running).toBeUndefined();
    expect(work).not.toHaveBeenCalled();
    expect(places).toEqual([]);
  });

  it('takes a place that can be woken when it opens at last, once, and leaves no listener behind (G7)', async () => {
    const ruler = new Locks(store, { logger: false });
    const lease = await ruler.acquire('shop-leader', { keyTimeout: 60_000 });
    const election = locks.leaderElection('shop');
    const running = election.run(() => 'led');
    inbox.fail();
    await eventually(() => places.length === 1);
    inbox.succeed();
    await eventually(() => places.length === 2);
    inbox.succeed();
    await lease.release();
    expect(await running).toBe('led');
    expect(places).toHaveLength(2);
    await eventually(() => inbox.listeners.size === 0);
    await ruler.close();
  });
});
