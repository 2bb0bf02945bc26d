// What the README says of the limits, sentence by sentence.
import { Injectable, Module, Scope, type Provider } from '@nestjs/common';
import { ContextIdFactory } from '@nestjs/core';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  currentLease,
  DistributedLock,
  DistributedLockModule,
  LockConfigError,
  LockLostError,
  Locks,
  LockTimeoutError,
} from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { firstValueFrom, of, type Observable } from 'rxjs';
import { eventually } from '../support/eventually.js';

@Injectable()
class StockService {
  @DistributedLock({ value: 'stock' })
  async fencingToken(): Promise<number | null | undefined> {
    return currentLease()?.fencingToken;
  }
}

class Filter {
  /** As compiled without `useDefineForClassFields`: no own property until it is given a value. */
  declare sku?: string;
}

@Injectable()
class SearchService {
  @DistributedLock({ paramLock: true })
  async search(_filter: Filter): Promise<string> {
    return 'found';
  }
}

@Injectable()
class FeedService {
  @DistributedLock({ waitTimeout: 0 })
  watch(): Observable<string> {
    return of('apple');
  }

  @DistributedLock({ waitTimeout: 0, returns: 'observable' })
  watchToo(): Observable<string> {
    return of('apple');
  }
}

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

async function appWith(...providers: Provider[]): Promise<TestingModule> {
  const store = memoryStore();
  const app = await Test.createTestingModule({ imports: [DistributedLockModule.forRoot({ store, logger: false })], providers }).compile();
  await app.init();
  ends.push(() => app.close());
  return app;
}

function openLocks(): Locks {
  const locks = new Locks(memoryStore(), { logger: false });
  ends.push(() => locks.close());
  return locks;
}

describe('an instance that Nest did not make', () => {
  it.each([Scope.DEFAULT, Scope.REQUEST, Scope.TRANSIENT])('is locked where a factory of scope %d made it', async (scope) => {
    const app = await appWith({ provide: StockService, scope, useFactory: () => new StockService() });
    const stock = scope === Scope.DEFAULT ? app.get(StockService) : await app.resolve(StockService, ContextIdFactory.create());
    expect(await stock.fencingToken()).toBeGreaterThan(0);
  });

  it('is refused where it was made with plain new', async () => {
    await expect(new StockService().fencingToken()).rejects.toThrow(/StockService.fencingToken: this instance was not made by Nest/);
  });

  it('is refused where a factory made it and calls it', async () => {
    const useFactory = async (): Promise<StockService> => {
      const stock = new StockService();
      await stock.fencingToken();
      return stock;
    };
    await expect(appWith({ provide: StockService, useFactory })).rejects.toThrow(LockConfigError);
  });
});

it('without forRoot an app does not start', async () => {
  @Module({ providers: [StockService] })
  class AppModule {}
  await expect(Test.createTestingModule({ imports: [AppModule] }).compile()).rejects.toThrow(
    /DistributedLockModule.forRoot\(\) is not imported/,
  );
});

it('paramLock refuses an object of a class that has no field of its own', async () => {
  const search = (await appWith(SearchService)).get(SearchService);
  await expect(search.search(new Filter())).rejects.toThrow(/argument 0 is of class Filter and without fields of its own/);
  await expect(search.search(Object.assign(new Filter(), { sku: 'apple' }))).resolves.toBe('found');
});

it('a return type that is imported as a type only says nothing: "returns" must', async () => {
  const feed = (await appWith(FeedService)).get(FeedService);
  await expect(feed.watch() as unknown as Promise<string>).rejects.toThrow("say so with returns: 'observable'");
  await expect(firstValueFrom(feed.watchToo())).resolves.toBe('apple');
});

it('a call that re-enters a lease that is lost already does not run', async () => {
  const locks = openLocks();
  let ran = false;
  const outer = locks.using(
    'order:42',
    async (lease) => {
      await eventually(() => lease.remaining() === 0);
      return locks.using('order:42', () => (ran = true));
    },
    { maxHold: 1, keyTimeout: 50 },
  );
  await expect(outer).rejects.toThrow(LockLostError);
  expect(ran).toBe(false);
});

describe('a bare lease', () => {
  it('opens no call chain: a second acquire waits like a stranger', async () => {
    const locks = openLocks();
    await locks.acquire('order:42');
    expect(currentLease()).toBeUndefined();
    await expect(locks.acquire('order:42', { waitTimeout: 50 })).rejects.toThrow(LockTimeoutError);
  });

  it('re-enters inside a using of the same key', async () => {
    const locks = openLocks();
    await locks.using('order:42', async (outer) => {
      const inner = await locks.acquire('order:42', { waitTimeout: 0 });
      expect(inner.fencingToken).toBe(outer.fencingToken);
      await inner.release();
    });
  });

  it('is not waited for by close(), but ended', async () => {
    const locks = openLocks();
    const lease = await locks.acquire('order:42');
    await locks.close();
    expect(() => lease.assertHeld()).toThrow();
    expect(lease.signal.aborted).toBe(true);
  });
});

it('with reentrant: false a nested call waits for its own caller', async () => {
  const locks = openLocks();
  const nested = locks.using('order:42', () => locks.using('order:42', () => 'inside', { reentrant: false, waitTimeout: 50 }));
  await expect(nested).rejects.toThrow(LockTimeoutError);
});

it('an event loop that stands still for longer than the keyTimeout loses the lease, and the caller is told', async () => {
  const locks = openLocks();
  const blocked = locks.using(
    'order:42',
    () => {
      for (const start = performance.now(); performance.now() < start + 150;);
      return 'done';
    },
    { keyTimeout: 100 },
  );
  const error: unknown = await blocked.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(LockLostError);
  expect(error).toMatchObject({ result: 'done' });
});

it('after maxHold the signal aborts, and the call stays pending until its body ends', async () => {
  const locks = openLocks();
  const outcome = await locks.using(
    'order:42',
    async ({ signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return 'stopped by the signal';
    },
    { keyTimeout: 10_000, maxHold: 20 },
  );
  expect(outcome).toBe('stopped by the signal');
});
