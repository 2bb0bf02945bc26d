import { passTime } from '../support/virtual-time.js';
import { type AcquireReply, type LeaseDriver, LockTimeoutError, StoreError } from 'nestjs-distributed-lock/core';
import { random } from '../support/random.js';
import { gate } from '../support/gate.js';
import { outage } from './misbehaviour.js';
import { semaphoreOf } from './kinds.js';
import { locksOpener, type MakeStore } from './open-locks.js';
import { rejection } from '../support/rejection.js';
import { patient } from './setting.js';

/** Counts who is inside, weighed by permits, and the most there ever were. Nobody leaves before so many have been inside at a time. */
class Room {
  most = 0;
  entries = 0;
  private inside = 0;
  private readonly full = gate();

  constructor(private readonly size = 1) {}

  async visit(permits = 1): Promise<void> {
    this.entries++;
    this.inside += permits;
    this.most = Math.max(this.most, this.inside);
    if (this.inside >= this.size) this.full.open();
    await this.full.passed;
    await passTime(random() * 2);
    this.inside -= permits;
  }
}

export function semaphoreExclusionContract(makeStore: MakeStore): void {
  const { open, newKey } = locksOpener(makeStore, semaphoreOf(3));
  let key: string;

  beforeEach(() => (key = newKey()));

  it('an outage is never reported as contention, also if another caller of this process has got a permit since', async () => {
    const taken: AcquireReply = { granted: false, remaining: -1, holder: null, ahead: 0 };
    let owner: string | undefined;
    let isFree = false;
    const misbehaving = (real: LeaseDriver): Partial<LeaseDriver> => ({
      acquire(request) {
        owner ??= request.owner;
        if (request.owner !== owner) return Promise.reject(outage());
        return isFree ? real.acquire(request) : Promise.resolve(taken);
      },
    });
    const semaphore = open({ misbehaving }).semaphore(key, { permits: 2 });
    const first = semaphore.acquire(patient);
    // Without jitter its request is repeated after 5.1 s, and next after 10.2 s.
    const random = jest.spyOn(Math, 'random').mockReturnValue(0);
    const second = rejection(semaphore.acquire({ ...patient, waitTimeout: 7_000 }));
    await passTime(6_000);
    // At the end of the wait timeout the store is asked again, for the caller that is first.
    isFree = true;
    expect(await second).toBeInstanceOf(StoreError);
    random.mockRestore();
    await (await first).release();
  });

  describe('G2 never more inside than permits', () => {
    it('of 2,000 callers of two Locks, and as many as that at times', async () => {
      const all = [open(), open()];
      const room = new Room(10);
      const call = (n: number) => all[n % 2]!.semaphore(key, { permits: 10 }).using(() => room.visit(), patient);
      await Promise.all(Array.from({ length: 2_000 }, (_, n) => call(n)));
      expect(room).toMatchObject({ entries: 2_000, most: 10 });
    });

    it('of callers who take one to five of seven, and of which some give up', async () => {
      const all = [open(), open()];
      const room = new Room();
      let timeouts = 0;
      const call = async (n: number) => {
        const count = 1 + (n % 5);
        const semaphore = all[n % 2]!.semaphore(key, { permits: 7, count });
        const visit = semaphore.using(() => room.visit(count), {
          ...patient,
          fair: n % 3 === 0,
          waitTimeout: n % 4 === 0 ? n % 50 : Infinity,
        });
        await visit.catch((error: unknown) => {
          if (!(error instanceof LockTimeoutError)) throw error;
          timeouts++;
        });
      };
      await Promise.all(Array.from({ length: 400 }, (_, n) => call(n)));
      expect(room.most).toBeLessThanOrEqual(7);
      expect(room.most).toBeGreaterThan(4);
      expect(room.entries + timeouts).toBe(400);
    });
  });

  it('the number of permits lets in waiters behind a holder of the same process, when another caller of theirs asks with more', async () => {
    const locks = open();
    const soon = { ...patient, retryInterval: 50, waitTimeout: 3_000 };
    const one = locks.semaphore(key, { permits: 1 });
    const holder = await one.acquire(soon);
    const waiting = [one.acquire(soon), one.acquire(soon)];
    await passTime(500);
    const more = await locks.semaphore(key, { permits: 4 }).acquire(patient);
    for (const lease of [holder, more, ...(await Promise.all(waiting))]) lease.assertHeld();
  });

  describe('a call chain that holds permits', () => {
    it('takes as many or fewer again by the same lease, also when none is left', async () => {
      const locks = open();
      const [all, one] = [locks.semaphore(key, { permits: 3, count: 3 }), locks.semaphore(key, { permits: 3 })];
      await all.using((outer) => one.using((inner) => expect(inner.owner).toBe(outer.owner), { waitTimeout: 0 }));
      expect(await all.tryAcquire()).not.toBeNull();
    });

    it('is refused more at once, which it could never get, and may take them beside with reentrant: false', async () => {
      const locks = open();
      const [one, two] = [locks.semaphore(key, { permits: 3 }), locks.semaphore(key, { permits: 3, count: 2 })];
      await one.using(async (lease) => {
        const error = await rejection(two.acquire(patient));
        expect(error).toMatchObject({ name: 'LockConfigError', key });
        expect(String(error)).toMatch(/holds 1 permits? and asks for 2/);
        const beside = await two.acquire({ ...patient, waitTimeout: 0, reentrant: false });
        expect(beside.owner).not.toBe(lease.owner);
        await beside.release();
      });
    });
  });
}
