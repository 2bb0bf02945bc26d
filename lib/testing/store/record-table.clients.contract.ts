import { type RecordTable, TOUCH, VOID } from '../../stores/records/record.table.js';
import { FREE, HOUR, type TableOpener } from './open-tables.js';
import { describe, expect, it } from './runner.js';

const CLIENTS = 6;
const ROUNDS = 25;

/** Several changes at once, and several clients. */
export function tableClientsContract(setting: TableOpener): void {
  const { open, newKey, exchange, look, time, made, changeOf, fenced, isTimed } = setting;

  describe('an exchange of several changes', () => {
    it('answers each by a promise of its own, in their order, some made and some not', async () => {
      const [absent, taken, changed, looked, touched, freed] = Array.from({ length: 6 }, newKey) as [string, ...string[]];
      const ofTaken = await made({ key: taken, record: 'taken', tokens: 1, fence: 7 });
      const ofChanged = await made({ key: changed, record: 'old' });
      await made({ key: looked, record: 'looked' });
      const ofTouched = await made({ key: touched, record: 'touched' });
      if (isTimed) await made({ key: freed, ...FREE, tokens: 1, fence: 20 });
      const endsAt = (await time()) + HOUR;
      const changes = [
        changeOf({ key: absent, endsAt }),
        changeOf({ key: taken, endsAt }),
        changeOf({ key: changed, expected: ofChanged.version, record: 'new', endsAt }),
        changeOf({ key: looked, expected: undefined, endsAt }),
        changeOf({ key: touched, expected: TOUCH, endsAt }),
        changeOf({ key: freed, endsAt, tokens: 2, fence: 3 }),
      ];
      const found = await Promise.all(setting.table.exchange(changes));
      expect(found).toMatchObject([
        { written: true },
        { written: false, version: ofTaken.version, record: 'taken', ...fenced(7) },
        { written: true },
        { written: false, record: 'looked', ...(isTimed && { time: expect.any(Number) }) },
        { written: false, record: 'touched' },
        { written: true, ...fenced(22) },
      ]);
      expect(found[4]!.version).not.toBe(ofTouched.version);
      for (const [index, record] of [
        [0, 'record'],
        [2, 'new'],
        [5, 'record'],
      ] as const)
        // prettier-ignore
        expect(await look(changes[index]!.key)).toMatchObject({ version: found[index]!.version, record });
    });

    it('makes or refuses hundreds, of every sort', async () => {
      const many = Array.from({ length: 250 }, newKey);
      const endsAt = (await time()) + HOUR;
      const write = (record: string, expected: (index: number) => string | undefined) =>
        Promise.all(
          setting.table.exchange(
            many.map((each, i) => changeOf({ key: each, record, expected: expected(i), endsAt, tokens: 1, fence: i + 1 })),
          ),
        );
      const first = await write('one', () => VOID);
      expect(first.every(({ written }) => written)).toBe(true);
      const second = await write('two', (i) => (i % 2 ? first[i]!.version : VOID));
      expect(second.map(({ written }) => written)).toEqual(many.map((_, i) => i % 2 === 1));
      const last = await write('', () => undefined);
      for (const [i, found] of last.entries()) {
        expect(found).toMatchObject({
          record: i % 2 ? 'two' : 'one',
          version: (i % 2 ? second : first)[i]!.version,
          ...fenced(i + 1 + (i % 2)),
        });
      }
    });

    it('of none asks for nothing', () => {
      expect(setting.table.exchange([])).toEqual([]);
    });
  });

  describe('of several clients at once', () => {
    it('one takes a key that nobody had', async () => {
      const tables = Array.from({ length: CLIENTS }, open);
      for (let round = 0; round < 10; round++) {
        const key = newKey();
        const found = await Promise.all(tables.map((each, i) => exchange({ key, record: `by ${i}`, tokens: 1 }, each)));
        expect(found.filter(({ written }) => written)).toHaveLength(1);
        expect(await look(key)).toMatchObject({ record: `by ${found.findIndex(({ written }) => written)}`, ...fenced(1) });
      }
    });

    it('none loses an update of a record that all of them increment', async () => {
      const increment = async (by: RecordTable): Promise<void> => {
        for (let left = ROUNDS, seen = await look(setting.key, by); left > 0;) {
          const record = String(Number(seen.record) + 1);
          const found = await exchange({ expected: seen.version || VOID, record, tokens: 1, fence: 1 }, by);
          if (found.written) left--;
          seen = found.written ? { ...found, record } : found;
        }
      };
      await Promise.all(Array.from({ length: CLIENTS }, () => increment(open())));
      expect(await look()).toMatchObject({ record: String(CLIENTS * ROUNDS), ...fenced(CLIENTS * ROUNDS) });
    });

    it('none loses an update in batches that overlap, in orders of their own', async () => {
      const many = Array.from({ length: 12 }, newKey);
      const sums = new Map(many.map((each) => [each, { made: 0, unknown: 0 }]));
      const endsAt = (await time()) + HOUR;
      const work = async (by: RecordTable, order: readonly string[]): Promise<void> => {
        const seen = await Promise.all(order.map((each) => look(each, by)));
        for (let round = 0; round < ROUNDS; round++) {
          const changes = order.map((each, i) =>
            changeOf({ key: each, expected: seen[i]!.version || VOID, record: String(Number(seen[i]!.record) + 1), endsAt }),
          );
          const outcomes = await Promise.allSettled(by.exchange(changes));
          for (const [i, outcome] of outcomes.entries()) {
            const sum = sums.get(order[i]!)!;
            if (outcome.status === 'rejected') {
              // It may say that it does not know, where others were too fast.
              expect(outcome.reason).toMatchObject({ name: 'StoreError', transient: true, isUnsent: false });
              sum.unknown++;
              seen[i] = await look(order[i], by);
            } else if (outcome.value.written) {
              sum.made++;
              seen[i] = { ...outcome.value, record: changes[i]!.record };
            } else seen[i] = outcome.value;
          }
        }
      };
      await Promise.all([work(open(), many), work(open(), [...many].reverse()), work(open(), [...many.slice(6), ...many.slice(0, 6)])]);
      for (const each of many) {
        const { made: least, unknown } = sums.get(each)!;
        const count = Number((await look(each)).record);
        expect(count).toBeGreaterThanOrEqual(least);
        expect(count).toBeLessThanOrEqual(least + unknown);
        expect(count).toBeGreaterThanOrEqual(ROUNDS / 2);
      }
    });
  });
}
