import { Locks } from '../../lib/core.js';
import { Lifecycle } from '../../lib/core/holding/lifecycle.js';
import type { Tenure } from '../../lib/core/holding/tenure.js';
import { Watchdog } from '../../lib/core/holding/watchdog.js';
import { asStoreError, StoreError, type LockError } from '../../lib/core/model/errors.js';
import { LockEventEmitter } from '../../lib/core/model/events.js';
import { LockLog } from '../../lib/core/model/lock-log.js';
import type { RenewRequest } from '../../lib/core/store/lease-driver.js';
import type { LockStore } from '../../lib/core/store/lock-store.js';
import { StoreWatch } from '../../lib/core/store/store-watch.js';
import { memoryStore } from '../../lib/stores/memory/memory.store.js';
import { eventually } from '../support/eventually.js';

type Reply = 'renewed' | 'lost';

/** A driver that only renews; `answer` says how. */
class RenewingDriver {
  readonly batches: (readonly RenewRequest[])[] = [];
  answer: (batch: readonly RenewRequest[]) => Promise<readonly Reply[]> = async (batch) => batch.map(() => 'renewed');

  renew(batch: readonly RenewRequest[]): readonly Promise<Reply>[] {
    this.batches.push(batch.map(({ key, owner, ttl }) => ({ key, owner, ttl })));
    const replies = this.answer(batch);
    return batch.map(async (_, index) => (await replies)[index]!);
  }
}

let owners = 0;

/** What a tenure is to the watchdog, and a record of what happened to it. */
class FakeTenure {
  readonly key = 'key';
  readonly owner = `owner ${++owners}`;
  readonly runtime = new Lifecycle(
    new LockEventEmitter(new LockLog(false)),
    1_000,
    () => 'owner',
    new StoreWatch({ name: 'fake' } as LockStore, '', new LockLog(false)),
  );
  readonly isRenewed = true;
  readonly turn = { grantedAt: performance.now() };
  validUntil: number;
  renewAt: number;
  readonly replies: Reply[] = [];
  readonly lags: number[] = [];
  readonly unknown: LockError[] = [];
  expiredAt: number | undefined;

  constructor(
    private readonly watchdog: Watchdog,
    readonly driver: RenewingDriver,
    readonly ttl: number,
    sentAt = performance.now(),
  ) {
    this.validUntil = sentAt + ttl;
    this.renewAt = sentAt + ttl / 3;
    this.runtime.events.on('lag', ({ lag }) => this.lags.push(lag));
    this.runtime.events.on('unknown', ({ error }) => this.unknown.push(error));
    watchdog.add(this.asTenure, performance.now());
  }

  get asTenure(): Tenure {
    return this as unknown as Tenure;
  }

  asks(): void {}

  answered(reply: Reply, sentAt: number): void {
    this.replies.push(reply);
    if (reply === 'lost') return this.watchdog.remove(this.asTenure);
    this.validUntil = sentAt + this.ttl;
    this.renewAt = sentAt + this.ttl / 3;
  }

  failed(cause: unknown): LockError {
    return asStoreError(cause, this.key);
  }

  expire(): void {
    this.expiredAt = performance.now();
    this.watchdog.remove(this.asTenure);
  }
}

const outage = () => new StoreError('No answer, on purpose.', { transient: true });

describe('the watchdog', () => {
  let watchdog: Watchdog;
  let driver: RenewingDriver;
  const pass = (milliseconds: number) => jest.advanceTimersByTimeAsync(milliseconds);

  beforeEach(() => {
    jest.useFakeTimers();
    watchdog = new Watchdog();
    driver = new RenewingDriver();
  });
  afterEach(() => jest.useRealTimers());

  it('has one timer for all leases, and sends a batch for each driver', async () => {
    const others = new RenewingDriver();
    const tenures = Array.from({ length: 1_000 }, (_, index) => new FakeTenure(watchdog, index % 2 ? driver : others, 3_000));
    expect(jest.getTimerCount()).toBe(1);
    await pass(1_001);
    expect(driver.batches.map((batch) => batch.length)).toEqual([500]);
    expect(others.batches.map((batch) => batch.length)).toEqual([500]);
    expect(jest.getTimerCount()).toBe(1);
    for (const tenure of tenures) expect(tenure.replies).toEqual(['renewed']);
  });

  it('gathers thousands of leases that fall due at as many instants into few batches, and loses none', async () => {
    const tenures: FakeTenure[] = [];
    for (let index = 0; index < 5_000; index++) {
      tenures.push(new FakeTenure(watchdog, driver, 10_000));
      if (index % 5 === 0) await pass(1);
    }
    driver.batches.length = 0;
    await pass(30_000);
    expect(driver.batches.length).toBeLessThanOrEqual(90);
    expect(tenures.filter(({ expiredAt }) => expiredAt !== undefined)).toEqual([]);
  });

  it.each([3, 10, 50, 300, 1_250])('does not spin with a ttl of %d ms: a renewal for each third, and no more', async (ttl) => {
    new FakeTenure(watchdog, driver, ttl);
    await pass(1_000);
    expect(driver.batches.length).toBeLessThanOrEqual(Math.ceil(3_000 / ttl));
  });

  it('finds a tenure by its owner, and none that has ended since the first question', async () => {
    const first = new FakeTenure(watchdog, driver, 900);
    const find = ({ owner }: FakeTenure, key = 'key') => watchdog.tenureOf(key, owner);
    expect(find(first)).toBe(first);
    expect(find(first, 'another')).toBeUndefined();
    const second = new FakeTenure(watchdog, driver, 900);
    watchdog.remove(first.asTenure);
    expect([find(first), find(second)]).toEqual([undefined, second]);
    const third = new FakeTenure(watchdog, driver, 900);
    await pass(2_000);
    expect([find(second), find(third)]).toEqual([second, third]);
  });

  it('is not kept from the leases of one store by the failure of another', async () => {
    const failing = new RenewingDriver();
    failing.answer = () => Promise.reject(outage());
    const failed = new FakeTenure(watchdog, failing, 300);
    const tenure = new FakeTenure(watchdog, driver, 900);
    await pass(5_000);
    expect(failed.expiredAt).toBeDefined();
    expect(tenure).toMatchObject({ expiredAt: undefined, unknown: [] });
  });

  it('leaves a lease alone that was removed while a renewal was under way, and rests when there is none left', async () => {
    driver.answer = async () => {
      watchdog.remove(tenure.asTenure);
      throw outage();
    };
    const tenure = new FakeTenure(watchdog, driver, 900);
    await pass(5_000);
    expect(driver.batches).toHaveLength(1);
    expect(tenure).toMatchObject({ unknown: [], expiredAt: undefined });
    expect(jest.getTimerCount()).toBe(0);
  });

  it.each([
    [2 ** 31, 1_000_000, 0],
    [Number.MAX_SAFE_INTEGER, 1_000_000, 0],
    [2 ** 33, 2 ** 31 + 2 ** 30, 1],
  ])('has renewed a lease of %d ms after %d ms as often as %d times', async (ttl, time, renewals) => {
    const tenure = new FakeTenure(watchdog, driver, ttl);
    await pass(time);
    expect(driver.batches).toHaveLength(renewals);
    expect([jest.getTimerCount(), tenure.expiredAt]).toEqual([1, undefined]);
  });

  describe('on an event loop that stood still', () => {
    let stoodStill: number;

    beforeEach(() => {
      stoodStill = 0;
      const clock = performance.now.bind(performance);
      jest.spyOn(performance, 'now').mockImplementation(() => clock() + stoodStill);
    });
    afterEach(() => jest.restoreAllMocks());

    /** The tick that was due after 300 ms comes later by so much. */
    async function lateTick(milliseconds: number): Promise<void> {
      await pass(299);
      stoodStill = milliseconds;
      await pass(1);
    }

    it('renews at once what is still valid, and reports a lag of more than a third of the shortest lease, the first in danger', async () => {
      const tenure = new FakeTenure(watchdog, driver, 900);
      const long = new FakeTenure(watchdog, driver, 60_000);
      await lateTick(400);
      expect(driver.batches).toHaveLength(1);
      expect([tenure.lags.length, long.lags]).toEqual([1, []]);
      // It began after the last look, and a fortieth of the lease before the tick at most.
      expect(tenure.lags[0]).toBeGreaterThanOrEqual(400);
      expect(tenure.lags[0]).toBeLessThan(400 + 900 / 40 + 2);
    });

    it('does not report a lag of less than a third', async () => {
      const tenure = new FakeTenure(watchdog, driver, 900);
      await lateTick(250);
      expect(driver.batches).toHaveLength(1);
      expect(tenure.lags).toEqual([]);
    });
  });

  it('does not take a grant that was long under way for an event loop that stood still', async () => {
    const tenure = new FakeTenure(watchdog, driver, 900, performance.now() - 800);
    await pass(10);
    expect(driver.batches).toHaveLength(1);
    expect(tenure.lags).toEqual([]);
  });
});

describe('the watchdog of a process whose tests have fake clocks', () => {
  afterEach(() => void jest.useRealTimers());

  it('renews on after a test has thrown a fake clock away with its timer', async () => {
    const store = memoryStore();
    const renew = jest.spyOn(store.mutex, 'renew');
    const locks = new Locks(store, { logger: false });
    jest.useFakeTimers();
    await locks.acquire('faked');
    jest.useRealTimers();
    const { owner } = await locks.acquire('real', { keyTimeout: 5_000 });
    await eventually(() => renew.mock.calls.some(([batch]) => batch.some((request) => request.owner === owner)));
    await locks.close();
  });

  it('renews under each fake clock, though all begin at 0', async () => {
    for (const time of [100, 100, 60_000]) {
      jest.useFakeTimers();
      const lease = await new Locks(memoryStore(), { logger: false }).acquire('faked', { keyTimeout: 10_000 });
      await jest.advanceTimersByTimeAsync(time);
      expect(lease.remaining()).toBeGreaterThan(5_000);
      jest.useRealTimers();
    }
  });
});
