import { Inject, Injectable } from '@nestjs/common';
import { CronLock, currentLease, DistributedLock, type DistributedLockOptions, Locks } from 'nestjs-distributed-lock';

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** What a service keeps its data in. */
export class Shelf {
  readonly units = new Map<string, number>();
  pages = 0;

  async read(sku: string): Promise<number> {
    await turn();
    return this.units.get(sku) ?? 10;
  }

  async write(sku: string, units: number): Promise<void> {
    await turn();
    this.units.set(sku, units);
  }

  async print(): Promise<void> {
    await turn();
    this.pages++;
  }
}

/** A database with transactions. */
export class Database {
  async transaction<T>(work: () => Promise<T>): Promise<T> {
    const result = await work();
    await this.commit();
    return result;
  }

  async commit(): Promise<void> {
    await turn();
  }
}

/** A service that does all right. */
@Injectable()
export class StockService {
  constructor(
    @Inject(Shelf) readonly shelf: Shelf,
    @Inject(Database) readonly database: Database,
    @Inject(Locks) readonly locks: Locks,
  ) {}

  @DistributedLock<StockService['reduce']>({ value: 'stock', key: (sku) => sku, waitTimeout: 30_000 })
  async reduce(sku: string, units = 1): Promise<number> {
    return this.database.transaction(() => this.sell(sku, units));
  }

  async move(from: string, to: string): Promise<void> {
    const [first, second] = [from, to].sort();
    await using _first = await this.locks.acquire(`shelf-${first}`);
    await using _second = await this.locks.acquire(`shelf-${second}`);
    await this.shelf.write(to, await this.shelf.read(from));
  }

  /** A page each second, for an hour. */
  @DistributedLock({ value: 'report' })
  async report(): Promise<string> {
    const { signal } = currentLease()!;
    return this.print(() => (signal.throwIfAborted(), true));
  }

  @CronLock({ value: 'nightly', minHold: 60_000 })
  async nightly(): Promise<void> {
    await this.shelf.print();
  }

  protected async print(goesOn: () => boolean): Promise<string> {
    for (let page = 0; page < 3_600 && goesOn(); page++) {
      await this.shelf.print();
      await sleep(1_000);
    }
    return 'reported';
  }

  async sell(sku: string, units: number): Promise<number> {
    const left = (await this.shelf.read(sku)) - units;
    await this.shelf.write(sku, left);
    return left;
  }
}

class NoLock extends StockService {
  override reduce(sku: string, units = 1): Promise<number> {
    return this.sell(sku, units);
  }
}

/** A service whose sales have these options. */
function reducing(options: DistributedLockOptions): typeof StockService {
  class Reducing extends StockService {
    @DistributedLock(options)
    override async reduce(sku: string, units = 1): Promise<number> {
      return this.sell(sku, units);
    }
  }
  return Reducing;
}

const key = (sku: unknown) => String(sku);

/** The next holder reads what was there before the commit. */
class LockInTransaction extends StockService {
  override async reduce(sku: string, units = 1): Promise<number> {
    return this.database.transaction(() => this.locks.using(`stock-${sku}-locks`, () => this.sell(sku, units)));
  }
}

/** It does not wait for what it writes. */
class ReleasedEarly extends StockService {
  @DistributedLock({ value: 'stock', key })
  override async reduce(sku: string, units = 1): Promise<number> {
    const left = (await this.shelf.read(sku)) - units;
    void this.shelf.write(sku, left);
    return left;
  }
}

class IgnoresSignal extends StockService {
  @DistributedLock({ value: 'report' })
  override async report(): Promise<string> {
    return this.print(() => true);
  }
}

/** Its caller gets a result as if all went well. */
class SwallowsLoss extends StockService {
  @DistributedLock({ value: 'report', onLost: 'ignore' })
  override async report(): Promise<string> {
    const { signal } = currentLease()!;
    return this.print(() => !signal.aborted);
  }
}

/** Its lease ends before it does. */
class NotRenewed extends StockService {
  @DistributedLock({ value: 'report', keyTimeout: 60_000, renew: false })
  override async report(): Promise<string> {
    return super.report();
  }
}

/** Two of it, in opposite directions, wait for each other. */
class AnyOrder extends StockService {
  override async move(from: string, to: string): Promise<void> {
    await using _first = await this.locks.acquire(`shelf-${from}`);
    await using _second = await this.locks.acquire(`shelf-${to}`);
    await this.shelf.write(to, await this.shelf.read(from));
  }
}

class NeverReleases extends StockService {
  override async move(from: string, to: string): Promise<void> {
    for (const sku of [from, to].sort()) await this.locks.acquire(`shelf-${sku}`);
    await this.shelf.write(to, await this.shelf.read(from));
  }
}

/** An instance whose clock is behind runs the tick once more. */
class NoMinHold extends StockService {
  @DistributedLock({ value: 'nightly', waitTimeout: 0, onTimeout: 'skip' })
  override async nightly(): Promise<void> {
    await this.shelf.print();
  }
}

/** What is wrong, and the test of documented.ts that finds it. */
export const broken: Record<string, [typeof StockService, string]> = {
  'has no lock': [NoLock, 'under its lock'],
  'locks another key': [reducing({ value: 'stok', key }), 'under its lock'],
  'releases before it has written': [ReleasedEarly, 'under its lock'],
  'locks inside of the transaction': [LockInTransaction, 'commits under its lock'],
  'has too narrow a key': [reducing({ value: 'stock', paramLock: true }), 'one sale of a product at a time'],
  'has too wide a key': [reducing({ value: 'stock' }), 'two products at once'],
  'skips silently': [reducing({ value: 'stock', key, onTimeout: () => 0 }), 'rejects when the key stays taken'],
  'gives up too early': [reducing({ value: 'stock', key, waitTimeout: 500 }), 'waits for another instance'],
  'waits without a limit': [reducing({ value: 'stock', key, retryCount: 0 }), 'waits for so long and no longer'],
  'ignores its signal': [IgnoresSignal, 'stops when its lease is lost'],
  'swallows LockLostError': [SwallowsLoss, 'reports the loss'],
  'has a lease that ends before it does': [NotRenewed, 'runs for an hour'],
  'takes two locks in any order': [AnyOrder, 'takes two locks in one order'],
  'does not release a bare lease': [NeverReleases, 'releases what it takes'],
  'has a cron without minHold': [NoMinHold, 'one run of a tick'],
};
