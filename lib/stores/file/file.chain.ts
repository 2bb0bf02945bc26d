import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { StoreError } from '../../core/model/errors.js';
import { dateOf, now } from '../../core/util/clock.js';
import { BOOT, type Processes } from './file.host.js';

/** The state of a key. It is never changed: the next one follows it, in a file of its own. */
export interface State {
  readonly id: string;
  /** The id of the state before; '': it is the first. */
  readonly previous: string;
  readonly key: string;
  readonly record: string | null;
  /** In milliseconds of the host's clock, as {@link at}. */
  readonly endsAt: number;
  readonly fence: number;
  /** When it was written. */
  readonly at: number;
  readonly boot: string;
  readonly processes: Processes;
  /** No state follows: the directory is being removed. */
  readonly isLast?: true;
}

/** The last state, and the numbers of all that are there. */
export interface Tail {
  readonly number: number;
  readonly state: State;
  readonly numbers: readonly number[];
}

/** So many states are kept, so that a process that was paused can find out what has become of its own. */
const KEPT = 8;
/** Other processes may make or remove states while one reads, but not each time. */
const MOST_READS = 100;
const NAME = /^\d{16}$/;

/**
 * The states of one key: a directory with numbered files. The process that creates the next number has made the change: `link` creates a file with its
 * content, or fails if it is there.
 *
 * A process that was paused before its `link` may create a number again that was removed long ago. Such a file is never the last one: numbers only grow,
 * also when a directory is made again, since its first number is the wall clock. It is detected after the `link`.
 *
 * All calls are synchronous: these few small files are in the memory of the system, and a call takes less time than a trip through the thread pool.
 */
export class FileChain {
  /** @param drafts begins the paths of files that are being made. */
  constructor(
    private readonly folder: string,
    private readonly drafts: string,
  ) {}

  /** `undefined`: there is no state. */
  last(): Tail | undefined {
    let suspect: number | undefined;
    for (let reads = 0; reads < MOST_READS; reads++) {
      const numbers = this.numbers();
      const number = numbers.at(-1);
      if (number === undefined) return undefined;
      const state = this.read(number);
      // Removed meanwhile.
      if (!state) continue;
      if (state.isLast) this.remove(numbers);
      else if (state.previous === '' || numbers.includes(number - 1)) return { number, state, numbers };
      // Made by a process that was paused while the directory was emptied; or a list that was made during a change.
      else if (number === suspect) this.unlink(number);
      suspect = number;
    }
    throw new StoreError(`Files: ${this.folder} has old states that this user may not remove.`, { transient: false, isRefusal: true });
  }

  /** In milliseconds since 1970; `Infinity`: it was removed meanwhile. */
  writtenAt(number: number): number {
    return statSync(this.pathOf(number), { throwIfNoEntry: false })?.mtimeMs ?? Infinity;
  }

  /** Whether the state is the first one now, or follows the given one. @throws {StoreError} if that is unknown; ENOENT without the folder of drafts. */
  add(state: State, tail?: Tail): boolean {
    const draft = `${this.drafts}_${state.id}`;
    if (!tail) return this.begin(draft, state);
    try {
      this.write(draft, state);
      linkSync(draft, this.pathOf(tail.number + 1));
    } catch (error) {
      if (isCode(error, 'EEXIST', 'ENOENT') && (error as NodeJS.ErrnoException).syscall === 'link') return false;
      throw error;
    } finally {
      tryTo(() => unlinkSync(draft));
    }
    return this.confirm(state, tail.number + 1);
  }

  /** Removes the directory after a state that {@link State.isLast}. Several processes may do it at once, or one of them late. */
  remove(numbers: readonly number[]): void {
    // In order: without the last one the others would count.
    for (const number of numbers) this.unlink(number);
    // It fails if the directory is used again.
    tryTo(() => rmdirSync(this.folder));
  }

  /** A directory that has a state already cannot be replaced by another one. */
  private begin(draft: string, state: State): boolean {
    try {
      mkdirSync(draft, { recursive: true });
      this.write(join(draft, nameOf(dateOf(now()) * 1000)), state);
      renameSync(draft, this.folder);
      return true;
    } catch (error) {
      tryTo(() => rmSync(draft, { recursive: true, force: true }));
      if (isCode(error, 'EEXIST', 'ENOTEMPTY') || (process.platform === 'win32' && isCode(error, 'EPERM'))) return false;
      throw error;
    }
  }

  private confirm({ id }: State, number: number): boolean {
    const numbers = this.numbers();
    const last = numbers.at(-1) ?? 0;
    if (last === number && numbers.includes(number - 1)) {
      for (const each of numbers) if (each <= number - KEPT) this.unlink(each);
      return true;
    }
    const successor = last > number ? this.read(number + 1) : undefined;
    if (successor?.previous === id) return true;
    this.unlink(number);
    if (last <= number || successor) return false;
    throw new StoreError('Files: others have made many changes meanwhile, so that it is unknown whether ours was one of them.', {
      transient: true,
    });
  }

  private numbers(): number[] {
    const names = namesIn(this.folder).filter((name) => NAME.test(name));
    // The file of a number that is not safe would not be found again.
    return names.sort().map(Number).filter(Number.isSafeInteger);
  }

  private read(number: number): State | undefined {
    let text: string;
    try {
      text = readFileSync(this.pathOf(number), 'utf8');
    } catch (error) {
      if (isCode(error, 'ENOENT')) return undefined;
      throw error;
    }
    let state: State;
    try {
      state = Object(JSON.parse(text)) as State;
    } catch {
      // The host crashed before it was on the disk, and its processes with it. Tokens go on by the clock.
      return { id: `broken:${number}`, previous: '', key: '', record: null, endsAt: 0, fence: 0, at: 0, boot: BOOT, processes: {} };
    }
    if (isState(state)) return state;
    throw new StoreError(`Files: ${this.pathOf(number)} is no state of a lock.`, { transient: false });
  }

  private write(path: string, state: State): void {
    writeFileSync(path, JSON.stringify(state));
  }

  private unlink(number: number): void {
    tryTo(() => unlinkSync(this.pathOf(number)));
  }

  private pathOf(number: number): string {
    return join(this.folder, nameOf(number));
  }
}

function isState({ id, previous, key, record, endsAt, fence, at, boot, processes }: State): boolean {
  const areTexts = [id, previous, key, record ?? '', boot].every((each) => typeof each === 'string');
  return areTexts && [endsAt, fence, at].every(Number.isFinite) && typeof processes === 'object' && processes !== null;
}

/** Does what another process may have done already, or a sweep does later. */
export function tryTo<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    // Nothing is lost.
    return undefined;
  }
}

/** The names in a folder that may not exist. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isCode(error, 'ENOENT')) return [];
    throw error;
  }
}

export function isCode(error: unknown, ...codes: string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException).code ?? '');
}

function nameOf(number: number): string {
  return String(number).padStart(16, '0');
}
