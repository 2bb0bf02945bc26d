// The module, the stores and the matchers of the kit.
import { mayTake, passTime } from '../support/virtual-time.js';
import { Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { currentLease, DistributedLock, DistributedLockModule, InjectLocks, Locks, LockTimeoutError } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { DistributedLockTestingModule, faultyStore, LockProbe } from 'nestjs-distributed-lock/testing';
import { lockMatchers } from 'nestjs-distributed-lock/testing/jest';
import { watchTransaction } from '../../lib/fence-guard/open-transactions.js';
import { open } from './shop.js';

expect.extend(lockMatchers);
mayTake(70_000);

@Injectable()
class Till {
  @DistributedLock({ value: 'till', keyTimeout: 3_000 })
  async sell(): Promise<void> {
    await passTime(100);
    currentLease()!.assertHeld();
  }
}

describe('replace', () => {
  @Injectable()
  class Shop {
    constructor(@InjectLocks('other') readonly other: Locks) {}

    @DistributedLock<Shop['order']>({ value: 'order', key: (sku) => sku, waitTimeout: 0, store: 'other' })
    async order(_sku: string): Promise<string> {
      return 'ordered';
    }

    async close(): Promise<void> {}
  }
  const store = () => redisStore({ url: 'redis://127.0.0.1:1' });
  class OfOther {
    readonly store = store();

    get namespace(): string {
      return 'other:';
    }
  }
  @Module({
    imports: [
      DistributedLockModule.forRoot({ store: store(), namespace: 'shop:', defaults: { keyTimeout: 5_000 }, failFast: true }),
      DistributedLockModule.forRootAsync({ name: 'other', useFactory: () => new OfOther() }),
    ],
    providers: [Till, Shop],
  })
  class AppModule {}

  it('gives an app stores in memory, and leaves it its names, namespaces and defaults', async () => {
    const { app, locks, own } = await open(DistributedLockTestingModule.replace(Test.createTestingModule({ imports: [AppModule] })));
    await app.init();
    await app.get(Till).sell();
    expect(locks).toHaveLocked('shop:till-locks', { by: 'Till.sell' });
    const elsewhere = await app.get(Shop).other.acquire('k');
    expect(elsewhere.remaining()).toBeGreaterThan(9_000);
    expect(locks).toHaveLocked('other:k');
    const lease = await own.acquire('k');
    expect(lease.remaining()).toBeLessThan(5_000);
    await locks.faults.lose('*');
    expect([elsewhere.signal.aborted, lease.signal.aborted]).toEqual([true, true]);
  });

  it('finds a key, and holds it elsewhere, in whichever of its stores it is', async () => {
    const { app, locks, own } = await open(DistributedLockTestingModule.replace(Test.createTestingModule({ imports: [AppModule] })));
    const { other } = app.get(Shop);
    const keys = [locks.keyOf(Till, 'sell'), locks.keyOf(Shop, 'order', 'apple')];
    expect(keys).toEqual(['shop:till-locks', 'other:order-apple-locks']);
    expect(() => locks.keyOf(Shop, 'order', '')).toThrow('LOCK_CONFIG_KEY');
    expect(() => locks.keyOf(Shop, 'close')).toThrow('has no lock of this store');
    const held = await locks.holdElsewhere('other:order-apple-locks');
    await expect(app.get(Shop).order('apple')).rejects.toBeInstanceOf(LockTimeoutError);
    await held.release();
    expect(await app.get(Shop).order('apple')).toBe('ordered');
    // It is taken in one of them, and stays free in the other.
    await own.acquire('one');
    await expect(locks.holdElsewhere('shop:one')).rejects.toBeInstanceOf(LockTimeoutError);
    await other.acquire('two');
    await expect(locks.holdElsewhere('other:two')).rejects.toBeInstanceOf(LockTimeoutError);
    for (const key of ['shop:one', 'other:two']) await new LockProbe(key === 'shop:one' ? other : own).holdElsewhere(key);
  });
});

describe('holdElsewhere', () => {
  it('holds as another process does, until it is released', async () => {
    const { own, locks } = await open();
    const elsewhere = await locks.holdElsewhere('k', { owner: 'pod-7' });
    await expect(own.acquire('k', { waitTimeout: 0 })).rejects.toThrow('held by pod-7@');
    await expect(locks.holdElsewhere('k')).rejects.toBeInstanceOf(LockTimeoutError);
    await passTime(60_000);
    expect(await own.tryAcquire('k')).toBeNull();
    await elsewhere.release();
    await elsewhere.release();
    expect(await own.tryAcquire('k')).not.toBeNull();
    expect(locks).toHaveLocked('k', { times: 1 });
  });

  it.each(['read', 'write', 'semaphore'] as const)('holds a %s lock', async (kind) => {
    const { own, locks } = await open();
    await using _elsewhere = await locks.holdElsewhere('k', { kind });
    const lock = kind === 'semaphore' ? own.semaphore('k', { permits: 1 }) : own.readWriteLock('k').write;
    expect(await lock.tryAcquire()).toBeNull();
  });

  it('does not close the store when it is released', async () => {
    let closed = 0;
    const own = new Locks({ ...memoryStore(), close: async () => void closed++ }, { logger: false });
    const probe = new LockProbe(own);
    await (await probe.holdElsewhere('k')).release();
    expect(closed).toBe(0);
    await own.close();
    expect(closed).toBe(1);
    probe.onApplicationShutdown();
    expect(() => probe.faults).toThrow('Wrap it: faultyStore(store)');
  });
});

it('what is held elsewhere is released before the store is closed', async () => {
  const { mutex, ...store } = memoryStore();
  const log: string[] = [];
  const release: typeof mutex.release = async (call) => {
    const reply = await mutex.release(call);
    await passTime(100);
    log.push('released');
    return reply;
  };
  const slow = {
    ...store,
    mutex: Object.assign(Object.create(mutex) as typeof mutex, { release }),
    close: async () => void log.push('closed'),
  };
  const { app, locks } = await open(Test.createTestingModule({ imports: [DistributedLockTestingModule.forRoot({ store: slow })] }));
  await locks.holdElsewhere('k');
  await app.close();
  expect(log).toEqual(['released', 'closed']);
});

it('a store that has faults keeps them in a testing module', async () => {
  const store = faultyStore(memoryStore());
  const { locks } = await open(Test.createTestingModule({ imports: [DistributedLockTestingModule.forRoot({ store })] }));
  expect(locks.faults).toBe(store.faults);
});

describe('matchers', () => {
  it('toHaveLocked counts, and says what was locked', async () => {
    const { own, locks } = await open();
    expect(locks).not.toHaveLocked('stock-apple');
    await own.using('stock-apple', async () => {}, { label: 'a' });
    await own.using('stock-apple', async () => {}, { label: 'b' });
    expect(locks).toHaveLocked('stock-apple', { times: 2 });
    expect(locks).toHaveLocked(/^stock-/, { times: 1, by: 'b', kind: 'mutex' });
    expect(locks).not.toHaveLocked('stock-apple', { kind: 'read' });
    expect(() => expect(locks).toHaveLocked('stock-aple')).toThrow(/\nLocked:\n {2}"stock-apple" \(mutex\) by a: released/);
    expect(() => expect(locks).not.toHaveLocked('stock-apple')).toThrow('not to be locked');
    locks.clear();
    expect(() => expect(locks).toHaveLocked('stock-apple')).toThrow('Nothing was locked.');
  });

  it('toHaveLockedInOrder', async () => {
    const { own, locks } = await open();
    for (const key of ['b', 'x', 'a']) await own.using(key, async () => {});
    expect(locks).toHaveLockedInOrder(['b', 'a']);
    expect(locks).not.toHaveLockedInOrder(['a', 'b']);
    expect(locks).not.toHaveLockedInOrder(['b', 'a', 'b']);
  });

  it('toHoldNothing names what is held', async () => {
    const { own, locks } = await open();
    expect(locks).toHoldNothing();
    const lease = await own.acquire('k', { label: 'leaky' });
    expect(() => expect(locks).toHoldNothing()).toThrow('"k" (mutex) by leaky: held');
    await lease.release();
    expect(locks).toHoldNothing();
    expect(() => expect(locks).not.toHoldNothing()).toThrow('all was released');
  });

  it('toHaveWaited and toHaveTimedOut', async () => {
    const { own, locks } = await open();
    const lease = await own.acquire('k');
    expect(locks).not.toHaveWaited('k');
    const waiting = own.acquire('k', { waitTimeout: 5_000 }).catch((error: unknown) => error);
    await passTime(1_000);
    expect(locks).toHaveWaited('k');
    expect(locks).not.toHaveWaited('k', { atLeast: 500 });
    expect(locks).not.toHaveTimedOut('k');
    await waiting;
    expect(locks).toHaveWaited('k', { atLeast: 5_000 });
    expect(locks).not.toHaveWaited('k', { atLeast: 6_000 });
    expect(locks).toHaveTimedOut('k');
    expect(() => expect(locks).toHaveTimedOut('other')).toThrow('a caller to give up waiting for "other", but 0 did');
    await lease.release();
  });

  it('toHaveReleasedEarly sees a lock inside of its transaction', async () => {
    const { own, locks } = await open();
    // As a fence guard does it, before a transaction that is open for so long.
    let isOpen = false;
    const guarded = (key: string) =>
      own.using(key, async (lease) => watchTransaction(lease, { isOpen: () => isOpen, calledAt: new Error(), isFault: false }));
    await guarded('k');
    expect(locks).not.toHaveReleasedEarly('k');
    isOpen = true;
    await guarded('k');
    expect(locks).toHaveReleasedEarly('k');
    expect(locks).not.toHaveReleasedEarly('other');
  });

  it('toHaveOverlapped sees two keys of one pattern', async () => {
    const { own, locks } = await open();
    await own.using('stock-1', async () => {});
    await own.using('stock-2', async () => {});
    expect(locks).not.toHaveOverlapped(/^stock/);
    await Promise.all(['stock-1', 'stock-2'].map((key) => own.using(key, () => passTime(10))));
    expect(locks).toHaveOverlapped(/^stock/);
    expect(locks).not.toHaveOverlapped('stock-1');
  });

  it('take a probe only', () => {
    expect(() => expect({}).toHoldNothing()).toThrow('Lock matchers take a LockProbe');
  });
});
