import type { CasChange, CasFound, CasRow, CasTable } from '../../stores/records/observed/cas.table.js';
import { newKey } from './open-tables.js';
import { afterEach, beforeEach, describe, expect, it } from './runner.js';

/** The count of writes, by which a process knows the age of a row that it has never looked at. */
export function casCountContract(makeTable: () => CasTable, isSwept: boolean): void {
  describe('the count of writes', () => {
    let table: CasTable;
    let other: CasTable;
    beforeEach(() => ([table, other] = [makeTable(), makeTable()]));
    afterEach(() => Promise.all([table.close(), other.close()]));

    const ask = (by: CasTable, key: string, expected: CasChange['expected'], text = ''): Promise<CasFound> =>
      by.exchange([{ key, expected, text, messages: [] }])[0]!;
    const write = async (key: string, text = 'text'): Promise<CasFound & { written: true }> => {
      const found = await ask(table, key, { version: undefined }, text);
      expect(found.written).toBe(true);
      return found as CasFound & { written: true };
    };
    const rowOf = async (key: string, by = table): Promise<CasRow | undefined> => {
      const found = await ask(by, key, 'look');
      return found.written ? undefined : found.row;
    };

    it('never goes back, to whichever table asks', async () => {
      const key = newKey();
      let [last, version] = [0, undefined as string | undefined];
      for (let i = 0; i < 20; i++) {
        const by = i % 2 ? table : other;
        const found = await ask(by, key, { version }, 'text');
        if (found.written) ({ version } = found);
        const told = [found.revision!, await by.count!(), (await ask(by, key, 'look')).revision];
        for (const next of told.filter((each) => each !== undefined)) {
          expect(next).toBeGreaterThanOrEqual(last);
          last = next;
        }
      }
    });

    it('of a row is larger than each reply from before it was written, and no larger than each one afterwards', async () => {
      for (let i = 0; i < 10; i++) {
        const key = newKey();
        const before = Math.max(await table.count!(), await other.count!());
        const { revision } = await write(key);
        const [after, seen] = [await other.count!(), await ask(other, key, 'look')];
        const row = (await rowOf(key))!;
        expect(row.revision).toBeGreaterThan(before);
        for (const told of [revision!, after, seen.revision ?? Infinity]) expect(told).toBeGreaterThanOrEqual(row.revision!);
      }
    });

    if (isSwept) {
      it('limits a sweep, which deletes what is over and was written by then; its versions never come again', async () => {
        const [over, stays, late] = [newKey(), newKey(), newKey()];
        const versions: string[] = [];
        for (let i = 0; i < 3; i++) {
          versions.push((await write(over, over)).version);
          if (i === 0) await write(stays);
          const count = await table.count!();
          if (i === 0) await write(late, over);
          await table.sweep!(count, ({ text }) => text === over);
          expect(await rowOf(over, other)).toBeUndefined();
          if (i === 0) expect([(await rowOf(stays))?.text, (await rowOf(late))?.text]).toEqual(['text', over]);
          for (const version of versions) expect(await ask(table, over, { version }, 'old')).toMatchObject({ written: false });
        }
        expect(new Set(versions).size).toBe(3);
      });
    }
  });
}
