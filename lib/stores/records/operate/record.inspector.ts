import { UnsupportedPrimitiveError } from '../../../core/model/errors.js';
import { keptBy, ownerOf } from '../../../core/model/owner.js';
import type { HolderState, Inspector, KeyState, SeizeRequest } from '../../../core/store/inspector.js';
import { LeaseSteps } from '../lease.steps.js';
import type { RecordQueue } from '../record.queue.js';
import type { RecordTable } from '../record.table.js';
import { ALL, holdOf, type Hold, type RecordWork } from '../record.work.js';

/** Most holders and waiters of a key that are shown. */
const MOST = 100;

/** Shows and frees the keys of a table. */
export class RecordInspector implements Inspector {
  constructor(
    private readonly recordQueue: RecordQueue,
    private readonly table: Pick<RecordTable, 'keys' | 'note'>,
  ) {}

  inspect(keys: readonly string[]): Promise<KeyState[]> {
    return Promise.all(keys.map((key) => this.recordQueue.ask(key, (work) => stateOf(work))));
  }

  async *keys(prefix: string): AsyncGenerator<readonly string[]> {
    if (!this.table.keys)
      throw new UnsupportedPrimitiveError('This store cannot list keys: its table has no "keys". Inspect them one by one.');
    yield* this.table.keys(prefix);
  }

  seize({ key, kind, owner, phase, token, keepFor }: SeizeRequest): Promise<boolean> {
    return this.recordQueue.ask(key, (work) => {
      const { record, fence } = work;
      if (record?.kind !== kind || (kind === 'mutex' && token !== undefined && fence !== token)) return false;
      const share = phase === 'kept' ? { key, owner: keptBy(owner), keepFor: 0 } : { key, owner, keepFor };
      if (!holdOf(record, share.owner)) return false;
      return new LeaseSteps(kind).release(work, share) === 'released';
    });
  }

  async note(line: string): Promise<void> {
    await this.table.note?.(line);
  }
}

function stateOf(work: RecordWork): KeyState {
  const { key, record, time, fence } = work;
  const at = Math.floor(time.micros / 1000);
  const fencingToken = fence > 0 ? fence : null;
  const nothing = { key, at, fencingToken, remaining: null, holders: [], holderCount: 0, waiters: [], waiterCount: 0 };
  if (!record) return { ...nothing, kind: 'free' };
  if (record.kind === 'count-down latch') {
    const { kind, count, endsAt, waiters } = record;
    return { ...nothing, kind, count, remaining: endsAt - time.early, waiterCount: Object.keys(waiters).length };
  }
  const { kind, holds, queue, permits } = record;
  return {
    key,
    at,
    kind: holds.length === 0 ? 'free' : kind,
    ...(kind === 'semaphore' && permits < ALL && { permits }),
    fencingToken,
    remaining: holds.length === 0 ? null : Math.max(...holds.map(({ endsAt }) => endsAt)) - time.early,
    holders: [...holds]
      .sort((one, other) => one.endsAt - other.endsAt)
      .slice(0, MOST)
      .map((hold) => holderOf(hold, time.early)),
    holderCount: holds.length,
    waiters: queue
      .slice(0, MOST)
      .map(({ owner, since, count, holding = [] }) => ({ owner, since, permits: permitsOf(count), holding, isHeard: true })),
    waiterCount: queue.length,
  };
}

function holderOf({ owner, endsAt, count, token }: Hold, time: number): HolderState {
  const holder = ownerOf(owner) ?? owner;
  const since = token === null ? null : Math.floor(token / 1000);
  return { owner: holder, phase: holder === owner ? 'held' : 'kept', remaining: endsAt - time, since, permits: permitsOf(count) };
}

function permitsOf(count: number): number {
  return count >= ALL ? Infinity : count;
}
