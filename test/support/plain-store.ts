import './virtual-time.js';
import type {
  AcquireReply,
  AcquireRequest,
  CheckReply,
  LatchDriver,
  LeaseDriver,
  LockStore,
  ReleaseRequest,
  RenewRequest,
  Tenancy,
} from 'nestjs-distributed-lock/core';
import { memoryAndRemains } from '../stores/memory/setting.js';
import { random } from './random.js';
import { pause } from './time.js';

const ENTRY_LIFETIME = 5_000;

/** Each request is applied after a moment and answered after another one: in any order. */
async function step<Reply>(apply: () => Promise<Reply>): Promise<Reply> {
  await pause(random() * 4);
  const reply = await apply();
  await pause(random() * 4);
  return reply;
}

/** A waiter in a queue, which ends when nobody asks for it. */
interface QueueEntry extends Tenancy {
  readonly driver: LeaseDriver;
  readonly endsAt: number;
}

/** What the processes that use the store have in common. */
export class PlainData {
  /** The last token of each key: a counter. */
  readonly tokens = new Map<string, number>();
  /** By key and owner, in the order in which they were asked for. */
  readonly entries = new Map<string, QueueEntry>();
  private readonly memory = memoryAndRemains();

  get store(): LockStore {
    return this.memory.store;
  }

  keep({ key, owner, driver }: Omit<QueueEntry, 'endsAt'>): void {
    const id = `${key} ${owner}`;
    this.entries.delete(id);
    this.entries.set(id, { driver, key, owner, endsAt: performance.now() + ENTRY_LIFETIME });
  }

  async expire(): Promise<void> {
    for (const [id, { driver, key, owner, endsAt }] of this.entries) {
      // The others were asked for later.
      if (endsAt > performance.now()) break;
      this.entries.delete(id);
      if ((await driver.check({ key, owner })).state === 'queued') await driver.leave({ key, owner });
    }
  }

  /** Names of the keys that are in use. */
  async remains(): Promise<string[]> {
    await this.expire();
    return this.memory.remains();
  }
}

class PlainDriver implements LeaseDriver {
  readonly queueEntryLifetime = ENTRY_LIFETIME;
  readonly isShared: boolean;

  constructor(
    private readonly memory: LeaseDriver,
    private readonly data: PlainData,
  ) {
    this.isShared = memory.isShared === true;
  }

  /** A yield is a request of its own: others may come between. */
  async acquire({ yields, ...request }: AcquireRequest): Promise<AcquireReply> {
    const { key, owner, queue } = request;
    const yielded = yields === undefined ? undefined : await this.release({ key, owner: yields, keepFor: 0 });
    return this.step(async () => {
      const reply = await this.memory.acquire(request);
      if (queue) this.data.keep({ driver: this.memory, key, owner });
      return reply.granted ? { granted: true, token: this.token(request), yielded } : { ...reply, yielded };
    });
  }

  renew(batch: readonly RenewRequest[]): readonly Promise<'renewed' | 'lost'>[] {
    return batch.map((request) => this.step(() => this.memory.renew([request])[0]!));
  }

  release(request: ReleaseRequest): Promise<'released' | 'lost'> {
    return this.step(() => this.memory.release(request));
  }

  leave(tenancy: Tenancy): Promise<void> {
    return this.step(() => this.memory.leave(tenancy));
  }

  check(tenancy: Tenancy): Promise<CheckReply> {
    return this.step(async () => {
      const reply = await this.memory.check(tenancy);
      return { ...reply, token: reply.token === null ? null : this.data.tokens.get(tenancy.key)! };
    });
  }

  private step<Reply>(apply: () => Promise<Reply>): Promise<Reply> {
    return step(async () => {
      await this.data.expire();
      return apply();
    });
  }

  /** Readers get that of the last write. */
  private token({ key, tokens, floor = 0, share }: AcquireRequest): number {
    const last = this.data.tokens.get(key) ?? 0;
    const isRead = this.memory === this.data.store.readWriteLock?.read && share !== undefined && share.count !== Infinity;
    const first = Math.max(isRead ? last : last + 1, floor, 1);
    this.data.tokens.set(key, isRead ? first : first + tokens - 1);
    return first;
  }
}

function plainLatches(memory: LatchDriver): LatchDriver {
  return {
    trySetCount: (change) => step(() => memory.trySetCount(change)),
    countDown: (change) => step(() => memory.countDown(change)),
    look: (look) => step(() => memory.look(look)),
    leave: (tenancy) => step(() => memory.leave(tenancy)),
  };
}

/**
 * The least that the seam asks of a store, to prove that the engine needs no more: nobody is woken, a yield is a release and then an acquire, tokens
 * are no times, and requests are applied and answered in any order. Each call is a process of its own over the same data.
 */
export function plainStore(data: PlainData): LockStore {
  const { mutex, readWriteLock, semaphore, countDownLatch } = data.store;
  const driver = (memory: LeaseDriver) => new PlainDriver(memory, data);
  return {
    name: 'plain',
    requestTimeout: 1_000,
    mutex: driver(mutex),
    readWriteLock: { read: driver(readWriteLock!.read), write: driver(readWriteLock!.write) },
    semaphore: driver(semaphore!),
    countDownLatch: plainLatches(countDownLatch!),
    supports: (feature) => feature !== 'inspect' && feature !== 'wakeUps',
    close: () => Promise.resolve(),
  };
}
