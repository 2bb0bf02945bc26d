import { afterTurns, mayTake } from '../support/virtual-time.js';
import { Locks, type LockTimeoutError, StoreError, type LocksOptions, type LogDetails } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { HeldLease } from '../../lib/core/holding/held-lease.js';
import { closedAfter } from '../support/closed-after.js';
import { gate } from '../support/gate.js';
import { withoutKeys } from '../readme/health-without-terminus.js';
import { eventually } from '../support/eventually.js';
import { throwing } from '../support/rejection.js';
import { firstTurnAfterStandingStill, pause } from '../support/time.js';

mayTake(130_000);
// Who waits for what is gathered once for an iteration of the event loop, and no time passes within one.
afterTurns(2);

function open(options: LocksOptions = {}, store = memoryStore()) {
  const lines: string[] = [];
  const details: (LogDetails | undefined)[] = [];
  const write = (level: string) => (message: string, about?: LogDetails) => void (lines.push(`${level} ${message}`), details.push(about));
  const logger = { warn: write('warn'), error: write('error'), debug: write('debug') };
  const locks = closedAfter(new Locks(store, { logger, shutdownTimeout: 0, app: 'shop', ...options }));
  return { locks, store, lines, details, logger, of: (level: string) => lines.filter((line) => line.startsWith(level)) };
}

/** A store whose renewals are not answered. */
function silentStore() {
  const store = memoryStore();
  const away = () => [Promise.reject(new StoreError('Redis did not answer within 1000 ms.', { transient: true }))];
  return { ...store, mutex: Object.create(store.mutex, { renew: { value: away } }) as typeof store.mutex };
}

const failureOf = (call: Promise<unknown>) => call.catch((error: unknown) => error as LockTimeoutError) as Promise<LockTimeoutError>;

describe('a timeout names the holder', () => {
  it('by its label, if it is a caller of this process: also one that queues by itself, and the turn that has it now', async () => {
    const { locks } = open();
    const first = await locks.acquire('key', { label: 'first' });
    const second = locks.acquire('key', { label: 'second', waitTimeout: 5000 });
    await first.release();
    const holder = await second;
    for (const options of [{ fair: true, waitTimeout: 10 }, { waitTimeout: 0 }, { waitTimeout: 10 }]) {
      const error = await failureOf(locks.acquire('key', options));
      expect(error).toMatchObject({ holder: holder.owner, holderLabel: 'second' });
      expect(error.message).toMatch(`it is held by ${holder.owner} (second, this process).`);
      const named = await failureOf(locks.using('key', () => undefined, { ...options, label: 'third' }));
      expect(named.stack).toMatch(/^(\w+: )?third: Could not/);
    }
  });

  it('by its owner only, if it has no label or is elsewhere', async () => {
    const { locks, store } = open();
    const { locks: others } = open({ app: 'other' }, store);
    const { owner } = await locks.acquire('bare');
    const bare = await failureOf(locks.acquire('bare', { waitTimeout: 10 }));
    expect(bare).toMatchObject({ holderLabel: undefined });
    expect(bare.message).toMatch(`it is held by ${owner} (this process).`);
    await store.mutex.acquire({ key: 'far', owner: 'shop@pod-7:1:0b9c', ttl: 5000, tokens: 1, queue: false });
    const error = await failureOf(others.acquire('far', { waitTimeout: 10 }));
    expect(error).toMatchObject({ holder: 'shop@pod-7:1:0b9c', holderLabel: undefined });
    expect(error.message).toMatch(/it is held by shop@pod-7:1:0b9c\. \[LOCK_TIMEOUT\]$/);
  });
});

describe('a timeout of callers of one process that wait for each other', () => {
  /** Each chain takes the first of its keys, and then waits for the next one until all time out. */
  async function wait(locks: Locks, chains: readonly string[][], patience?: number): Promise<(LockTimeoutError | undefined)[]> {
    const first = chains.map(() => gate());
    const end = gate();
    const errors: (LockTimeoutError | undefined)[] = [];
    await Promise.all(
      chains.map(([key, ...next], index) =>
        locks.using(key!, async () => {
          first[index]!.open();
          await Promise.all(first.map(({ passed }) => passed));
          // The first one times out first. All others wait meanwhile.
          for (const each of next) {
            const wanted = locks.using(each, () => undefined, { waitTimeout: patience ?? 50 + index, keyTimeout: 60_000 });
            errors[index] = await wanted.catch((error: unknown) => error as LockTimeoutError);
          }
          if (errors.some(Boolean)) end.open();
          await end.passed;
        }),
      ),
    );
    return errors;
  }

  it('names the keys of the cycle, through any number of callers', async () => {
    const { locks } = open();
    const [two] = await wait(locks, [['a', 'b'], ['b', 'a']]); // prettier-ignore
    expect(two!.message).toMatch(/\(this process\)\. This is a deadlock: the holder of "b" waits for "a", which this caller holds\./);
    const [three] = await wait(locks, [['a', 'b'], ['b', 'c'], ['c', 'a']]); // prettier-ignore
    expect(three!.message).toMatch(/deadlock: the holder of "b" waits for "c", its holder waits for "a", which this caller holds\./);
    const self = await locks.using('a', () => failureOf(locks.acquire('a', { reentrant: false, waitTimeout: 10 })));
    expect(self.message).toMatch(/\(this process\)\. This is a deadlock: this caller holds it itself\./);
  });

  it('names none where a holder goes on, or holds nothing that is waited for', async () => {
    const { locks } = open();
    const errors = await wait(locks, [['a', 'b'], ['b'], ['c', 'a']]); // prettier-ignore
    expect(errors[0]!.message).toMatch(/\(this process\)\. \[LOCK_TIMEOUT\]$/);
  });

  it('is searched for in one walk for all callers, and for a hundred at most, where hundreds time out together', async () => {
    const { locks } = open();
    const looks = jest.spyOn(HeldLease.prototype, 'owner', 'get');
    const callers = 300;
    const chains = (nextOf: (index: number) => string) => Array.from({ length: callers }, (_, index) => [`own ${index}`, nextOf(index)]);
    // One holder of a hot key, which waits for nothing.
    const hot = await locks.acquire('hot', { keyTimeout: 60_000 });
    const errors = await wait(locks, chains(() => 'hot'), 50); // prettier-ignore
    expect(errors.map((error) => error?.holder)).toEqual(Array.from({ length: callers }, () => hot.owner));
    expect(looks.mock.calls.length).toBeLessThan(20 * callers);
    // Rings of two.
    const pairs = await wait(locks, chains((index) => `own ${index ^ 1}`), 50); // prettier-ignore
    expect(pairs.filter((error) => error?.deadlock)).toHaveLength(100);
    // One long ring: none of them is told a part of it.
    const ring = await wait(locks, chains((index) => `own ${(index + 1) % callers}`), 50); // prettier-ignore
    expect(ring.filter((error) => error?.deadlock)).toEqual([]);
  });
});

describe('the log', () => {
  it('says of a loss who had the key, for how long, why, and what the store said', async () => {
    const { locks, of } = open({}, silentStore());
    await failureOf(
      locks.using('key', ({ signal }) => eventually(() => signal.aborted, { within: 20_000 }), { label: 'StockService.reduce' }),
    );
    const [line] = of('warn Lost');
    expect(line).toMatch(
      /^warn Lost "key" \(StockService\.reduce\) after 9\.9 s: not renewed within 10,000 ms; [4-9] renewals unanswered, last error: Redis did not answer within 1000 ms\. \[NDL_LEASE_LOST\]$/,
    );
    expect(of('warn')).toHaveLength(1);
  });

  it('says of a lease that was taken that no renewal was unanswered', async () => {
    const { locks, store, of } = open();
    const { owner } = await locks.acquire('key', { keyTimeout: 3000 });
    await pause(500);
    await store.mutex.release({ key: 'key', owner, keepFor: 0 });
    await eventually(() => of('warn').length > 0);
    expect(of('warn')).toEqual([
      'warn Lost "key" after 1 s: the store says that it belongs to somebody else or to nobody [NDL_LEASE_LOST]',
    ]);
  });

  it('names a caller that waits for long, the holder here and its age, and how many wait, once a minute for each label', async () => {
    const { locks, of, details } = open();
    const holder = await locks.acquire('key', { label: 'ReportService.nightly' });
    await pause(11_000);
    const patient = { waitTimeout: 200_000 };
    const waits = ['StockService.reduce', 'StockService.reduce', 'Orders.pay'].map((label) => locks.acquire('key', { ...patient, label }));
    await pause(29_000);
    expect(of('warn')).toEqual([]);
    await pause(2000);
    const process = holder.owner.slice(0, holder.owner.lastIndexOf(':'));
    const line = (label: string, waited: string, held: string) =>
      `warn ${label} has waited ${waited} for "key", held for ${held} by ${process} (ReportService.nightly); 3 wait here [NDL_SLOW_WAIT]`;
    expect(of('warn')).toEqual([line('StockService.reduce', '30 s', '41 s'), line('Orders.pay', '30 s', '41 s')]);
    expect(details.every((about) => about === undefined)).toBe(true);
    await pause(57_000);
    expect(of('warn')).toHaveLength(2);
    await pause(4000);
    expect(of('warn').slice(2)).toEqual([line('StockService.reduce', '90 s', '101 s'), line('Orders.pay', '90 s', '101 s')]);
    await holder.release();
    for (const wait of waits) await (await wait).release();
  });

  it('asks the store for a holder that is elsewhere', async () => {
    const { locks, store, of } = open();
    const away = { key: 'key', owner: 'shop@pod-7:1:0b9c', ttl: 60_000 };
    await store.mutex.acquire({ ...away, tokens: 1, queue: false });
    const wait = locks.acquire('key', { waitTimeout: 50_000, label: 'StockService.reduce' });
    await eventually(() => of('warn').length > 0, { within: 40_000, every: 1000 });
    expect(of('warn')[0]).toMatch(
      /^warn StockService\.reduce has waited 3\d s for "key", held( for 3\d s)? by shop@pod-7:1; 1 waits here \[NDL_SLOW_WAIT\]$/,
    );
    await store.mutex.release({ ...away, keepFor: 50_000 });
    await expect(wait).rejects.toThrow(/kept by its minHold for \d+ s more: shop@pod-7:1:0b9c has released it/);
    locks.acquire('key', { waitTimeout: 40_000, label: 'Orders.pay' }).catch(() => undefined);
    await eventually(() => of('warn').length > 1, { within: 40_000, every: 1000 });
    expect(of('warn')[1]).toMatch(/for "key", kept by the minHold of shop@pod-7:1; 1 waits here/);
  });

  it('of long waits may fail, which harms neither the process nor the wait', async () => {
    const { locks, of } = open({ slowWait: 100 });
    (locks as unknown as { loading: Promise<never> }).loading = Promise.reject(new Error('the file is gone'));
    (locks as unknown as { loading: Promise<never> }).loading.catch(() => undefined);
    const unhandled = jest.fn();
    process.on('unhandledRejection', unhandled);
    const holder = await locks.acquire('key');
    const wait = locks.acquire('key', { waitTimeout: 60_000 });
    await pause(1_000);
    await holder.release();
    await (await wait).release();
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
    expect(of('warn')).toEqual([]);
  });

  it.each<[string, number, (locks: Locks) => Promise<unknown>]>([
    ['a candidate of an election', 100, (locks) => locks.leaderElection('name').run(() => undefined)],
    ['anybody, if it is off', Infinity, (locks) => locks.acquire('name-leader', { waitTimeout: 120_000 })],
    ['a caller that gives up sooner', 500, (locks) => locks.acquire('name-leader', { waitTimeout: 400 })],
  ])('does not name %s', async (_who, slowWait, wait) => {
    const { locks, of } = open({ slowWait });
    await locks.acquire('name-leader', { label: 'holder' });
    wait(locks).catch(() => undefined);
    await pause(70_000);
    expect(of('warn')).toEqual([]);
  });

  it('says once of each length that a keyTimeout is so short that it may be meant in seconds', async () => {
    const both = [open(), open()];
    for (const { locks } of both)
      for (const keyTimeout of [31, 31, 499, 500, undefined]) await (await locks.acquire('key', { keyTimeout })).release();
    expect(both.flatMap(({ of }) => of('warn'))).toEqual(
      [31, 499].map((length) => expect.stringMatching(`^warn The keyTimeout of "key" is ${length} ms.*seconds.*\\[NDL_SHORT_LEASE\\]$`)),
    );
  });

  it('says once a minute that the event loop stands still, and how often it did', async () => {
    const { locks, of } = open();
    await locks.acquire('key', { keyTimeout: 3000 });
    for (let times = 0; times < 3; times++) {
      await pause(1000);
      await firstTurnAfterStandingStill(1200);
    }
    expect(of('warn')).toEqual([expect.stringMatching(/^warn The event loop stood still for \d+ ms/)]);
    await pause(60_000);
    await firstTurnAfterStandingStill(1200);
    expect(of('warn')[1]).toMatch(/^warn The event loop stood still for .*\(and 2 more such lines before\) \[NDL_EVENT_LOOP\]$/);
  });

  it('says once a minute, of each listener, that it fails', async () => {
    const { locks, of } = open();
    for (const fault of ['one', 'two']) locks.on('released', throwing(new Error(fault)));
    for (let times = 0; times < 5; times++) await locks.using('key', () => undefined);
    expect(of('error')).toEqual(['one', 'two'].map((fault) => `error A listener of "released" failed: Error: ${fault} [NDL_LISTENER]`));
    await pause(61_000);
    await locks.using('key', () => undefined);
    expect(of('error').slice(2)).toEqual(
      ['one', 'two'].map((fault) => `error A listener of "released" failed: Error: ${fault} (and 4 more such lines before) [NDL_LISTENER]`),
    );
  });

  it('says once a minute, of each label, that a wait timed out', async () => {
    const { locks, of } = open();
    await locks.acquire('key', { waitTimeout: 0 });
    const fail = (label?: string) => failureOf(locks.acquire('key', { waitTimeout: 10, label }));
    for (let times = 0; times < 3; times++) for (const label of ['Orders.pay', 'Orders.ship', undefined]) await fail(label);
    expect(of('debug').map((line) => line.split(' ')[1])).toEqual(['Orders.pay:', 'Orders.ship:', 'Could']);
    await pause(60_000);
    await fail('Orders.pay');
    expect(of('debug')[3]).toMatch(/^debug Orders\.pay: Could not acquire "key" .*\(and 2 more such lines before\)/);
  });

  it('tells at debug level of timeouts, of requests without an answer, and of hand-overs to other processes', async () => {
    const { locks, store, of } = open();
    const { locks: others } = open({ app: 'other' }, store);
    const holder = await locks.acquire('key');
    await failureOf(locks.acquire('key', { waitTimeout: 10, label: 'Orders.pay' }));
    expect(await locks.tryAcquire('key')).toBeNull();
    expect(of('debug')).toEqual([
      `debug Orders.pay: Could not acquire "key" within 10 ms: it is held by ${holder.owner} (this process). [LOCK_TIMEOUT]`,
    ]);
    const theirs = others.acquire('key', { waitTimeout: 5000 });
    await pause(10);
    const ours = locks.acquire('key', { waitTimeout: 5000 });
    await holder.release();
    const { owner } = await theirs;
    expect(of('debug')[1]).toBe(`debug Handed "key" over to ${owner}; 1 wait here`);
    await (await theirs).release();
    await (await ours).release();
    const acquire = store.mutex.acquire.bind(store.mutex);
    store.mutex.acquire = () => {
      store.mutex.acquire = acquire;
      return Promise.reject(new StoreError('away', { transient: true }));
    };
    await (await locks.acquire('other', { waitTimeout: 5000 })).release();
    expect(of('debug')[2]).toBe('debug Could not acquire "other": away [LOCK_STORE]');
  });

  it('quotes each key, so that a logger can leave them out', async () => {
    const lines: string[] = [];
    for (const level of ['warn', 'error'] as const)
      jest.spyOn(console, level).mockImplementation((...[line]) => void lines.push(String(line)));
    const locks = new Locks(silentStore(), { logger: withoutKeys, slowWait: 100 });
    const lease = await locks.acquire('customer:42', { label: 'holder' });
    await failureOf(locks.acquire('customer:42', { waitTimeout: 500 }));
    await failureOf(locks.using('customer:42', () => firstTurnAfterStandingStill(4000), { waitTimeout: 60_000 }));
    await locks.acquire('customer:42');
    await locks.close();
    jest.restoreAllMocks();
    expect(lease.remaining()).toBe(0);
    const all = lines.join('\n');
    for (const line of ['has waited', 'Lost "…" (holder)', 'stood still', 'Closed while']) expect(all).toContain(line);
    expect(all).not.toContain('customer');
  });

  it('is the caller by whose label an error begins, however the key was asked for', async () => {
    const { locks } = open();
    await locks.acquire('key');
    const options = { label: 'Orders.pay', waitTimeout: 0 };
    const [lock, all] = [locks.mutex('key'), locks.multiLock(['key', 'other'])];
    const closed = locks.mutex('refused');
    for (const failing of [lock.acquire(options), lock.using(() => 0, options), all.acquire(options), all.using(() => 0, options)]) {
      expect((await failureOf(failing)).message).toMatch(/^Orders\.pay: Could not acquire "key" within/);
    }
    await locks.close();
    for (const call of [closed.acquire(options), closed.tryAcquire(options), locks.multiLock(['key']).tryAcquire(options)])
      expect((await failureOf(call)).message).toMatch(/^Orders\.pay: Cannot acquire/);
  });

  it('gives details to a logger that wants them', async () => {
    const { logger, details, store } = open();
    const structured = new Locks(store, { logger: { ...logger, wantsDetails: true } });
    const { owner, fencingToken: token } = await structured.acquire('key', { keyTimeout: 3000, label: 'StockService.reduce' });
    await store.mutex.release({ key: 'key', owner, keepFor: 0 });
    await eventually(() => details.length > 0);
    expect(details).toEqual([{ key: 'key', label: 'StockService.reduce', owner, token }]);
    await structured.close();
  });
});

it('a telemetry adapter that cannot stop does not keep the store open', async () => {
  const store = memoryStore();
  const closed = jest.spyOn(store, 'close');
  const warnings: string[] = [];
  const stop = throwing(new Error('it cannot stop'));
  const logger = { warn: (message: string) => void warnings.push(message), error: () => undefined };
  await new Locks(store, { logger, telemetry: { observe: () => ({ stop }) } }).close();
  expect(closed).toHaveBeenCalledTimes(1);
  expect(warnings).toEqual(['A telemetry adapter failed: Error: it cannot stop [NDL_TELEMETRY]']);
});
