import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { StoreError } from '../../core/model/errors.js';
import type { StoreReport } from '../../core/store/lock-store.js';
import { after } from '../../core/util/clock.js';
import { type Change, type Found, type RecordTable, VOID } from '../records/record.table.js';
import { FileChain, isCode, type State, type Tail } from './file.chain.js';
import { BOOT, clock, isOfDead, processesOf, withoutDead } from './file.host.js';
import { reportOf } from './file.report.js';
import { FileWakeUps } from './file.wakeups.js';

const HOUR = 3_600_000;
/** Milliseconds between two sweeps, at least; twice as many at most. */
const SWEEP_INTERVAL = 300_000;
const MOST_AT_ONCE = 100;
/** No retry helps. */
const FINAL = ['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EISDIR', 'ENAMETOOLONG', 'ELOOP', 'ENOTSUP', 'EMLINK'];

/**
 * Records in the files of a directory, for the processes of one host. Ends are on the monotonic clock of the host, which all of them share; a record
 * that was written before the host was started has ended.
 */
export class FileTable implements RecordTable {
  readonly name = 'file';
  readonly wakeUps: FileWakeUps;
  private readonly keysFolder: string;
  private readonly drafts: string;
  private readonly inboxes: string;
  private sweeping: NodeJS.Timeout | undefined;

  constructor(
    private readonly directory: string,
    readonly requestTimeout: number,
  ) {
    this.keysFolder = join(directory, 'keys');
    this.drafts = join(directory, 'drafts');
    this.inboxes = join(directory, 'inboxes');
    this.wakeUps = new FileWakeUps(this.inboxes, this.drafts, requestTimeout);
  }

  exchange(changes: readonly Change[]): readonly Promise<Found>[] {
    this.sweepLater();
    return changes.map((change) => this.step(change).catch((error: unknown) => Promise.reject(storeErrorOf(error))));
  }

  async *keys(prefix: string): AsyncGenerator<string[]> {
    const names = await namesIn(this.keysFolder);
    for (let start = 0; start < names.length; start += MOST_AT_ONCE) {
      const tails = await Promise.all(names.slice(start, start + MOST_AT_ONCE).map((name) => this.chain(name).last()));
      yield tails.flatMap((tail) => (tail?.state.key.startsWith(prefix) ? [tail.state.key] : []));
    }
  }

  describe(): Promise<StoreReport> {
    return reportOf(this.directory);
  }

  async close(): Promise<void> {
    clearTimeout(this.sweeping);
    this.sweeping = undefined;
    await this.wakeUps.end();
  }

  /** Removes what nobody needs: keys that have been free for so many milliseconds, and what processes have left that are gone. */
  async sweep(endedFor = HOUR): Promise<void> {
    for (const name of await namesIn(this.keysFolder)) {
      const chain = this.chain(name);
      const tail = await chain.last();
      if (!tail || !hasEnded(tail.state, clock() - endedFor)) continue;
      const { key, fence } = tail.state;
      const last: State = { ...this.stateOf({ key, record: null, endsAt: 0 }, fence, tail), isLast: true };
      // The next look removes the directory.
      if (await chain.add(last, tail)) await chain.last();
    }
    for (const folder of [this.inboxes, this.drafts]) {
      for (const name of await namesIn(folder)) if (isOfDead(name)) await rm(join(folder, name), { recursive: true, force: true });
    }
  }

  /** Of a key, by the name of its directory. */
  protected chain(name: string): FileChain {
    return new FileChain(join(this.keysFolder, name), join(this.drafts, this.wakeUps.inbox));
  }

  private async step(change: Change): Promise<Found> {
    const { key, expected, notBefore, tokens, messages } = change;
    const chain = this.chain(createHash('sha256').update(key).digest('hex').slice(0, 32));
    const tail = await chain.last();
    const { id, fence: last } = tail?.state ?? { id: '', fence: 0 };
    const isExpected = expected === VOID ? !tail || hasEnded(tail.state, clock()) : expected === id && id !== '';
    if (!isExpected || notBefore > clock()) return foundIn(tail);
    const state = this.stateOf(change, tokens > 0 ? Math.max(last + tokens, change.fence) : last, tail);
    if (!(await this.add(chain, state, tail))) return foundIn(await chain.last());
    await Promise.all(messages.map(({ inbox, text }) => this.wakeUps.tell(inbox, text)));
    return { written: true, version: state.id, record: state.record, fence: state.fence, time: clock() };
  }

  private stateOf({ key, record, endsAt }: Pick<Change, 'key' | 'record' | 'endsAt'>, fence: number, tail?: Tail): State {
    const { id: previous = '', processes } = tail?.state ?? {};
    return { id: randomUUID(), previous, key, record, endsAt, fence, at: clock(), boot: BOOT, processes: processesOf(record, processes) };
  }

  private async add(chain: FileChain, state: State, tail?: Tail): Promise<boolean> {
    try {
      return await chain.add(state, tail);
    } catch (error) {
      if (!isCode(error, 'ENOENT')) throw error;
      // The first change of all.
      await Promise.all([this.keysFolder, this.drafts].map((folder) => mkdir(folder, { recursive: true })));
      return chain.add(state, tail);
    }
  }

  private sweepLater(): void {
    this.sweeping ??= after(SWEEP_INTERVAL * (1 + Math.random()), () => {
      this.sweep()
        .catch(() => undefined)
        .finally(() => {
          if (this.sweeping === undefined) return;
          this.sweeping = undefined;
          this.sweepLater();
        });
    }).unref();
  }
}

function hasEnded({ boot, at, endsAt }: State, time: number): boolean {
  // Without an id of the boot, a clock that is behind tells of another one.
  const isOfThisBoot = boot === BOOT && (boot !== '' || at <= clock());
  return (isOfThisBoot ? endsAt : 0) <= time;
}

function foundIn(tail: Tail | undefined): Found {
  const time = clock();
  if (!tail) return { written: false, version: '', record: null, fence: 0, time };
  const { id, record, fence, processes } = tail.state;
  const isFree = record === null || hasEnded(tail.state, time);
  return { written: false, version: id, record: isFree ? null : withoutDead(record, processes), fence, time };
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return [];
    throw error;
  });
}

function storeErrorOf(cause: unknown): StoreError {
  if (cause instanceof StoreError) return cause;
  return new StoreError(`Files: ${(cause as Error).message}`, { transient: !isCode(cause, ...FINAL), cause });
}
