import { randomBytes } from 'node:crypto';
import { StoreError } from '../../../core/model/errors.js';
import { after, awake as now, HOUR, isSettledWithin } from '../../../core/util/clock.js';
import { promised } from '../../../core/util/promised.js';
import { type Change, type Found, RecordSweep, type RecordTable, TOUCH, VOID } from '../record.table.js';
import type { TableTime } from '../record.work.js';
import type { CasChange, CasFound, CasTable } from './cas.table.js';
import { Observations, type Stamp } from './observations.js';
import { longestIn, recordIn, rowOf } from './observed.row.js';

/** Milliseconds without a reply after which the store is asked for its count: dates are as exact as that. */
const TICK = 1000;
/** The same while this process has used no key for so long. */
const IDLE_TICK = 10_000;
const IDLE_AFTER = 60_000;

/** The observations of this process of each store, as long as a table is open there: another one may answer after that. */
const observationsOf = new Map<string, Observations>();
/** Names this process among all. */
const PROCESS = randomBytes(9).toString('base64url');
let stamps = 0;

/**
 * Makes a table of a store that has no clock. A row has the length of a lease instead of its end, and each process counts it by its own monotonic clock,
 * from when it has first seen the request that set it. No clock is compared with another one: a lease that is valid to its holder is not taken by
 * others, if their clocks differ by less than 1 % in speed. It is how the leaders of Kubernetes are elected (client-go, `leaderelection`).
 */
export function observedTable(table: CasTable): RecordTable {
  const { name, requestTimeout, atOnce, wakeUps, bus, doctor, storeId } = table;
  const seen = (storeId !== undefined && observationsOf.get(storeId)) || new Observations();
  if (storeId !== undefined) observationsOf.set(storeId, seen);
  seen.tables++;
  const observed = new ObservedTable(table, seen);
  return {
    ...{ name, requestTimeout, atOnce, wakeUps, bus, doctor },
    observedTime,
    exchange: (changes) => observed.exchange(changes),
    keys: table.keys && ((prefix) => table.keys!(prefix)),
    onWarning: table.onWarning && ((listener) => table.onWarning!(listener)),
    note: table.note && ((line) => table.note!(line)),
    close() {
      if (observed.close() && --seen.tables === 0 && storeId !== undefined) observationsOf.delete(storeId);
      return table.close();
    },
  };
}

function observedTime(): TableTime {
  const time = now();
  return { early: time, late: time, micros: Date.now() * 1000, stamp: PROCESS + (stamps++).toString(36) };
}

/** A change as it is sent, and what the row then has. */
interface Sent {
  readonly change: CasChange;
  readonly fence: number;
  readonly stamps: readonly Stamp[];
}

class ObservedTable {
  private readonly sweeps = new RecordSweep(() => this.sweep());
  private usedAt = now();
  private ticking: NodeJS.Timeout | undefined;
  private isClosed = false;

  constructor(
    private readonly table: CasTable,
    private readonly seen: Observations,
  ) {
    table.onReplaced?.((store) => seen.replaced(store));
    if (table.count) this.tickIn(0);
  }

  exchange(changes: readonly Change[]): Promise<Found>[] {
    this.usedAt = now();
    this.sweeps.ifDue();
    const sent = changes.map((change) => this.prepare(change));
    const { known } = this.seen;
    const replies = this.table.exchange(sent.map(({ change }) => change));
    return sent.map(async (each, index) => {
      const found = await replies[index]!;
      return this.learn(each, found, this.seen.hear(found.revision, known));
    });
  }

  /** False: it is closed already. */
  close(): boolean {
    const wasOpen = !this.isClosed;
    this.isClosed = true;
    clearTimeout(this.ticking);
    return wasOpen;
  }

  private prepare({ key, expected, record, tokens, fence: floor, messages }: Change): Sent {
    const look: Sent = { change: { key, expected: expected === TOUCH ? 'touch' : 'look', text: '', messages: [] }, fence: 0, stamps: [] };
    if (expected === undefined || expected === TOUCH) return look;
    const row = expected === VOID ? { epoch: this.seen.epoch, fence: 0, version: undefined } : partsOf(expected);
    // The store was restored from a copy: another row may have the same version.
    if (row.epoch !== this.seen.epoch) return look;
    const fence = tokens > 0 ? Math.max(row.fence + tokens, floor) : row.fence;
    const { text, stamps } = rowOf(key, record, fence, this.seen);
    return { change: { key, expected: { version: row.version }, text, messages }, fence, stamps };
  }

  private learn({ change: { key }, fence, stamps }: Sent, found: CasFound, epoch: number): Found {
    if (found.written) {
      this.seen.see(
        key,
        stamps.map(([name, revision = found.revision]) => [name, revision]),
      );
      return { written: true, version: versionOf(epoch, fence, found.version), record: null, fence, time: undefined };
    }
    const { row } = found;
    if (!row) {
      this.seen.see(key, []);
      return { written: false, version: '', record: null, fence: 0, time: undefined };
    }
    try {
      const read = recordIn(key, row, this.seen);
      return { written: false, version: versionOf(epoch, read.fence, row.version), ...read, time: undefined };
    } catch (cause) {
      throw new StoreError(`The row of "${key}" is not valid, or of a newer version of nestjs-distributed-lock.`, {
        key,
        transient: false,
        cause,
      });
    }
  }

  /** Deletes the rows that ended an hour ago, if this process is old enough to know. */
  private async sweep(): Promise<void> {
    const { table, seen } = this;
    const endedBy = now() - HOUR;
    const count = seen.countAt(endedBy);
    if (count > 0) await table.sweep?.(count, ({ text, revision = Infinity }) => revision <= seen.countAt(endedBy - longestIn(text)));
  }

  private tickIn(delay: number): void {
    if (this.isClosed) return;
    this.ticking = after(delay, () => {
      const { seen } = this;
      const interval = now() < this.usedAt + IDLE_AFTER ? TICK : IDLE_TICK;
      const rest = seen.heardAt + interval - now();
      if (rest > 0) return this.tickIn(rest);
      const { known } = seen;
      const tick = promised(() => this.table.count!()).then(
        (count) => void seen.hear(count, known),
        // It may be restored from a copy meanwhile. A table that was closed has no answer for another reason, and others have the same observations.
        () => this.isClosed || seen.forget(),
      );
      void isSettledWithin(this.table.requestTimeout, tick).then(() => this.tickIn(interval));
    }).unref();
  }
}

/** A version for the record queue, which keeps the row's fence beside it. */
function versionOf(epoch: number, fence: number, version: string): string {
  return `${epoch}/${fence}/${version}`;
}

function partsOf(text: string): { epoch: number; fence: number; version: string } {
  const [epoch, fence, ...version] = text.split('/');
  return { epoch: Number(epoch), fence: Number(fence), version: version.join('/') };
}
