import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { StoreError } from '../../core/model/errors.js';
import type { StoreDoctor } from '../../core/store/store-doctor.js';
import { dateOf, HOUR, now } from '../../core/util/clock.js';
import { type Change, type Found, RecordSweep, type RecordTable, TOUCH, VOID } from '../records/record.table.js';
import { FileChain, isCode, namesIn, tryTo, type State, type Tail } from './file.chain.js';
import { BOOT, clock, isOfDead, processesOf, startOfKernel, withoutDead } from './file.host.js';
import { FileWakeUps } from './file.wakeups.js';

/** The keys that operators have freed. */
const NOTES = 'operators.log';
/** Milliseconds that the clocks of two kernels may differ by. */
const SKEW = 60_000;
const FULL = ['ENOSPC', 'EDQUOT'];
/** No retry helps. */
const FINAL = ['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EISDIR', 'ENAMETOOLONG', 'ELOOP', 'ENOTSUP', 'EMLINK'];
const nextIteration = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Records in the files of a directory, for the processes of one host. Ends are on the monotonic clock of the host, which all of them share; a record
 * that was written before the host was started has ended.
 */
export class FileTable implements RecordTable {
  readonly name = 'file';
  readonly wakeUps: FileWakeUps;
  readonly bus: FileWakeUps['bus'];
  private readonly directory: string;
  private readonly keysFolder: string;
  private readonly drafts: string;
  private readonly sweeps = new RecordSweep(() => this.sweep());

  /** @param given of any process; a relative one depends on where this one was started. */
  constructor(
    private readonly given: string,
    readonly requestTimeout: number,
  ) {
    const directory = (this.directory = resolve(given));
    this.keysFolder = join(directory, 'keys');
    this.drafts = join(directory, 'drafts');
    this.wakeUps = new FileWakeUps(join(directory, 'inboxes'), this.drafts, requestTimeout);
    this.bus = this.wakeUps.bus;
  }

  exchange(changes: readonly Change[]): readonly Promise<Found>[] {
    this.sweeps.ifDue();
    return changes.map(async (change, index) => {
      // Sixteen at a time: the event loop has other work, too.
      for (let iterations = index >> 4; iterations > 0; iterations--) await nextIteration();
      try {
        return this.step(change);
      } catch (error) {
        throw storeErrorOf(error);
      }
    });
  }

  async *keys(prefix: string): AsyncGenerator<string[]> {
    let names: string[];
    try {
      names = namesIn(this.keysFolder);
    } catch (error) {
      throw storeErrorOf(error);
    }
    for (const name of names) {
      // What another program has put there, or a key that this user may not read, does not end a listing.
      const key = tryTo(() => this.chain(name).last()?.state.key);
      if (key?.startsWith(prefix)) yield [key];
      await nextIteration();
    }
  }

  note(line: string): Promise<void> {
    return appendFile(join(this.directory, NOTES), `${line}\n`);
  }

  get doctor(): StoreDoctor {
    return { checks: async () => (await import('./operate/file.doctor.js')).fileChecks(this.directory, this.given) };
  }

  close(): Promise<void> {
    this.wakeUps.end();
    return Promise.resolve();
  }

  /** Removes keys that have been free for so many milliseconds, and files of processes that are gone. */
  async sweep(endedFor = HOUR): Promise<void> {
    for (const name of namesIn(this.keysFolder)) {
      // A key of another user, where this one may not write, does not hold up the others.
      tryTo(() => this.sweepKey(this.chain(name), endedFor));
      await nextIteration();
    }
    this.wakeUps.sweep();
    for (const name of namesIn(this.drafts)) if (isOfDead(name)) rmSync(join(this.drafts, name), { recursive: true, force: true });
  }

  private sweepKey(chain: FileChain, endedFor: number): void {
    const tail = chain.last();
    if (!tail || endOf(chain, tail) > clock() - endedFor) return;
    const { key, fence } = tail.state;
    const last: State = { ...this.stateOf({ key, record: null, endsAt: 0 }, fence, tail), isLast: true };
    // Reading it removes the directory.
    if (chain.add(last, tail)) chain.last();
  }

  /** The states of a key, by the name of its directory. */
  private chain(name: string): FileChain {
    return new FileChain(join(this.keysFolder, name), join(this.drafts, this.wakeUps.inbox));
  }

  private step(change: Change): Found {
    const { key, expected, notBefore, tokens, messages } = change;
    const chain = this.chain(createHash('sha256').update(key).digest('hex').slice(0, 32));
    const tail = chain.last();
    const { id, fence: last } = tail?.state ?? { id: '', fence: 0 };
    const end = tail ? endOf(chain, tail) : 0;
    if (tail && end === Infinity && (expected === TOUCH || expected === id)) throw new StoreError(aboutKernels(tail), { transient: true });
    if (expected === TOUCH) {
      if (tail) this.add(chain, this.stateOf(end > clock() ? tail.state : { key, record: null, endsAt: 0 }, last, tail), tail);
      return foundIn(chain, chain.last());
    }
    const isExpected = expected === VOID ? end <= clock() : expected === id && id !== '';
    if (!isExpected || notBefore > clock()) return foundIn(chain, tail);
    const state = this.stateOf(change, tokens > 0 ? Math.max(last + tokens, change.fence) : last, tail);
    if (!this.add(chain, state, tail)) return foundIn(chain, chain.last());
    for (const { inbox, text } of messages) this.wakeUps.tell(inbox, text);
    return { written: true, version: state.id, record: state.record, fence: state.fence, time: clock() };
  }

  private stateOf({ key, record, endsAt }: Pick<Change, 'key' | 'record' | 'endsAt'>, fence: number, tail?: Tail): State {
    const { id: previous = '', processes } = tail?.state ?? {};
    return { id: randomUUID(), previous, key, record, endsAt, fence, at: clock(), boot: BOOT, processes: processesOf(record, processes) };
  }

  private add(chain: FileChain, state: State, tail?: Tail): boolean {
    try {
      return chain.add(state, tail);
    } catch (error) {
      if (!isCode(error, 'ENOENT')) throw error;
      // The first change of all, or somebody has removed a folder.
      for (const folder of [this.keysFolder, this.drafts]) mkdirSync(folder, { recursive: true });
      return chain.add(state, tail);
    }
  }
}

/**
 * When the record ends, by our clock. Another kernel has a clock of its own: what it has written has ended if its time was over before ours was started,
 * or long ago. `Infinity`: it was written before ours was started, and its end is not known.
 *
 * @throws {StoreError} when it is of another kernel that runs now.
 */
function endOf(chain: FileChain, tail: Tail): number {
  const { boot, at, endsAt } = tail.state;
  // Without an id of the boot, a clock that is behind tells of another one.
  if (boot === BOOT && (boot !== '' || at <= clock())) return endsAt;
  const [writtenAt, startedAt] = [chain.writtenAt(tail.number), startOfKernel()];
  if (writtenAt + Math.max(0, endsAt - at) <= Math.max(startedAt, dateOf(now()) - SKEW)) return 0;
  if (writtenAt < startedAt) return Infinity;
  throw new StoreError(aboutKernels(tail), { transient: false });
}

function aboutKernels({ state: { key, boot } }: Tail): string {
  const names = `boot id and time namespace ${boot || 'unknown'}; here ${BOOT || 'unknown'}`;
  return `Files: "${key}" was changed under another kernel (${names}), or before the system was started. Only one kernel may use a directory.`;
}

function foundIn(chain: FileChain, tail: Tail | undefined): Found {
  const end = tail ? endOf(chain, tail) : 0;
  const time = clock();
  if (!tail) return { written: false, version: '', record: null, fence: 0, time };
  const { id, record, fence, processes } = tail.state;
  const left = record === null || end <= time ? null : end === Infinity ? record : withoutDead(record, processes);
  return { written: false, version: id, record: left, fence, time };
}

function storeErrorOf(cause: unknown): StoreError {
  if (cause instanceof StoreError) return cause;
  const isFinal = isCode(cause, ...FINAL);
  return new StoreError(`Files: ${(cause as Error).message}`, { transient: !isFinal, isRefusal: isFinal || isCode(cause, ...FULL), cause });
}
