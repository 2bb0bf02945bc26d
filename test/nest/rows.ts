import { currentLease, type DistributedLockOptions } from 'nestjs-distributed-lock';
import { bootKind, EXCLUSIVE, type Kind } from './kinds.js';

export const KEY = 'rows-locks';
export const LONG = 60_000;

/** An app with one async generator, which does what the test says, locked by these options under {@link KEY}. */
export async function bootRows(source: () => unknown = () => [1, 2, 3], options: DistributedLockOptions = {}, kind: Kind = EXCLUSIVE[0]!) {
  class Table {
    calls = 0;
    log: unknown[] = [];

    @kind.lock({ value: 'rows', keyTimeout: LONG, ...options })
    async *rows(): AsyncGenerator<unknown, unknown, unknown> {
      this.calls++;
      try {
        const last: unknown = yield* source() as AsyncIterable<unknown>;
        return last ?? 'end';
      } catch (error) {
        this.log.push(error);
        throw error;
      } finally {
        this.log.push(currentLease()?.key);
      }
    }
  }
  const booted = await bootKind(kind, { providers: [Table] });
  const table = booted.get(Table);
  return { ...booted, table, rows: () => table.rows(), taken: () => booted.isTaken(KEY) };
}

export async function read(rows: AsyncIterable<unknown>): Promise<unknown[]> {
  const items: unknown[] = [];
  for await (const item of rows) items.push(item);
  return items;
}
