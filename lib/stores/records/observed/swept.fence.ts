import { StoreError } from '../../../core/model/errors.js';
import { now } from '../../../core/util/clock.js';
import type { CasFound, CasRow, CasTable } from './cas.table.js';

/** The row of it is no record. No lock has this key, since no key has a control character. */
const KEY = '\tswept';
/** Milliseconds for which it is known. */
const FRESH = 60_000;
/** Milliseconds after which everybody knows it who makes a row. */
const SETTLED = 3 * FRESH;
/** A noted fence that is larger is ignored: tokens after it would soon be no exact numbers. */
const LARGEST = 2 ** 52;

/**
 * The largest fence of the rows that were deleted, in a row of its own. A row that is made begins above it: the clock of its process may be hours behind
 * that of the last one. It is written some minutes before they are deleted, so that it need not be read each time.
 */
export class SweptFence {
  /** For rows that are made. */
  fence = 0;
  private epoch = -1;
  private readAt = -Infinity;
  private noted = { fence: 0, at: Infinity, epoch: -1 };

  constructor(private readonly table: CasTable) {}

  isKnown(epoch: number): boolean {
    return this.epoch === epoch && now() < this.readAt + FRESH;
  }

  /** @param epoch of what is known: the store may be replaced. */
  async read(epoch: number): Promise<void> {
    const sentAt = now();
    this.fence = fenceOf(await this.row());
    [this.epoch, this.readAt] = [epoch, sentAt];
  }

  /** Whether a row with this fence may be deleted. */
  has(fence: number, epoch: number): boolean {
    return fence <= this.noted.fence && epoch === this.noted.epoch && now() >= this.noted.at + SETTLED;
  }

  /** To be called before rows with such fences are deleted. */
  async note(fence: number, epoch: number): Promise<void> {
    if (fence <= this.noted.fence && epoch === this.noted.epoch) return;
    const row = await this.row();
    if (fenceOf(row) < fence) {
      const text = `swept ${fence}`;
      const found = await this.table.exchange([{ key: KEY, expected: { version: row?.version }, text, messages: [] }])[0]!;
      if (!found.written) throw new StoreError('Another process sweeps.', { transient: true });
    }
    this.noted = { fence, at: now(), epoch };
  }

  /** Without it. */
  async *others(pages: AsyncIterable<readonly string[]>): AsyncGenerator<readonly string[]> {
    for await (const keys of pages) yield keys.filter((key) => key !== KEY);
  }

  private async row(): Promise<CasRow | undefined> {
    const found: CasFound = await this.table.exchange([{ key: KEY, expected: 'look', text: '', messages: [] }])[0]!;
    return found.written ? undefined : found.row;
  }
}

function fenceOf(row: CasRow | undefined): number {
  const fence = Number(/^swept (\d+)$/.exec(row?.text ?? '')?.[1] ?? 0);
  return fence < LARGEST ? fence : 0;
}
