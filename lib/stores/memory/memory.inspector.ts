import { keptBy, ownerOf } from '../../core/model/owner.js';
import type { HolderState, Inspector, KeyState, SeizeRequest } from '../../core/store/inspector.js';
import { now } from '../../core/util/clock.js';
import { ALL, type MemoryLeaseDriver } from './lease.driver.js';
import type { Latch } from './count-down-latch.driver.js';
import type { Hold, LockRecord } from './lock-record.js';
import type { MemoryRecords } from './memory.records.js';

/** As many as the Redis store shows. */
const MOST = 100;

/** Shows and frees the keys of a memory store. */
export class MemoryInspector implements Inspector {
  constructor(
    private readonly records: MemoryRecords,
    private readonly drivers: Readonly<Record<LockRecord['kind'], MemoryLeaseDriver>>,
  ) {}

  inspect(keys: readonly string[]): Promise<KeyState[]> {
    return Promise.resolve(keys.map((key) => this.stateOf(key)));
  }

  async *keys(prefix: string, latches: boolean): AsyncGenerator<readonly string[]> {
    yield this.records.keys().filter((key) => key.startsWith(prefix) && (latches || this.stateOf(key).kind !== 'count-down latch'));
  }

  async seize({ key, kind, owner, phase, token, keepFor }: SeizeRequest): Promise<boolean> {
    if (token !== undefined && kind === 'mutex' && this.stateOf(key).fencingToken !== token) return false;
    const share = phase === 'kept' ? { key, owner: keptBy(owner), keepFor: 0 } : { key, owner, keepFor };
    return (await this.drivers[kind].release(share)) === 'released';
  }

  note(): Promise<void> {
    return Promise.resolve();
  }

  private stateOf(key: string): KeyState {
    const time = now();
    const at = Date.now();
    const record = this.records.look<Latch | LockRecord>(key, time);
    const nothing = { key, at, fencingToken: null, remaining: null, holders: [], holderCount: 0, waiters: [], waiterCount: 0 };
    if (!record) return { ...nothing, kind: 'free' };
    if (record.kind === 'count-down latch') {
      return { ...nothing, kind: record.kind, count: record.count, remaining: record.endsAt - time, waiterCount: record.waiters.size };
    }
    const holds = record.holds;
    const waiters = record.queue?.places ?? [];
    const tokens = holds.map(({ token }) => token).filter((token) => token !== null);
    return {
      key,
      at,
      kind: holds.length === 0 ? 'free' : record.kind,
      ...(record.kind === 'semaphore' && record.permits < ALL && { permits: record.permits }),
      fencingToken: tokens.length === 0 ? null : Math.max(...tokens),
      remaining: holds.length === 0 ? null : Math.max(...holds.map(({ endsAt }) => endsAt)) - time,
      holders: holds.slice(0, MOST).map((hold) => holderOf(hold, time)),
      holderCount: holds.length,
      waiters: waiters
        .slice(0, MOST)
        .map(({ owner, since, count, holding }) => ({ owner, since, permits: permitsOf(count), holding, isHeard: true })),
      waiterCount: waiters.length,
    };
  }
}

function holderOf({ owner, endsAt, count, token }: Hold, time: number): HolderState {
  const holder = ownerOf(owner) ?? owner;
  const since = token === null ? null : Math.floor(token / 1000);
  return { owner: holder, phase: holder === owner ? 'held' : 'kept', remaining: endsAt - time, since, permits: permitsOf(count) };
}

function permitsOf(count: number): number {
  return count >= ALL ? Infinity : count;
}
