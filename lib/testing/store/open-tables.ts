import { type Change, type Found, type RecordTable, VOID } from '../../stores/records/record.table.js';
import { afterEach, beforeEach, expect } from './runner.js';

export interface TableOpener {
  /** Opens the table as another process would. It is closed when the test ends. */
  open(): RecordTable;
  newKey(): string;
  /** {@link VOID} by `record` with an end in an hour, where nothing else is said. */
  exchange(change: Partial<Change>, by?: RecordTable): Promise<Found>;
  look(key?: string, by?: RecordTable): Promise<Found>;
  /** The table's clock. */
  time(): Promise<number>;
  /** Exchanges, and expects that the change is made. */
  made(change: Partial<Change>, by?: RecordTable): Promise<Found>;
  /** Exchanges, and expects that the change is not made, and that the reply says what is there. */
  notMade(change: Partial<Change>): Promise<Found>;
  changeOf(change: Partial<Change>): Change;
  /** The fence that a row must have: of a table that keeps one. */
  fenced(fence: number): { fence?: number };
  /** Whether the table has a clock, and a fence in each row. */
  readonly isTimed: boolean;
  /** The table and the key of the test. */
  readonly table: RecordTable;
  readonly key: string;
}

export const HOUR = 3_600_000;
/** The part of a change that frees a key. */
export const FREE = { record: null, endsAt: 0 };

let keys = 0;

export const newKey = (): string => `table:${process.pid}:${++keys}`;

/**
 * Call it inside a `describe`. Each test has a table and a key of its own.
 *
 * @param isTimed as {@link TableOpener.isTimed}.
 */
export function tableOpener(makeTable: () => RecordTable, isTimed = true): TableOpener {
  const opened: RecordTable[] = [];
  let table: RecordTable;
  let key: string;

  const open = (): RecordTable => {
    opened.push(makeTable());
    return opened.at(-1)!;
  };
  beforeEach(() => {
    table = open();
    key = newKey();
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((each) => each.close()));
  });

  const changeOf = (change: Partial<Change>): Change => ({
    key,
    expected: VOID,
    record: 'record',
    endsAt: Infinity,
    notBefore: 0,
    tokens: 0,
    fence: 0,
    messages: [],
    isLazy: false,
    ...change,
  });
  const look = (of = key, by = table): Promise<Found> => by.exchange([changeOf({ key: of, expected: undefined, endsAt: 0 })])[0]!;
  const time = async (): Promise<number> => (await look()).time!;
  async function exchange(change: Partial<Change>, by = table): Promise<Found> {
    const whole = changeOf(change);
    const endsAt = isTimed && whole.endsAt === Infinity ? (await time()) + HOUR : whole.endsAt;
    return by.exchange([{ ...whole, endsAt }])[0]!;
  }

  return {
    isTimed,
    open,
    newKey,
    changeOf,
    look,
    time,
    exchange,
    fenced: (fence) => (isTimed ? { fence } : {}),
    async made(change, by) {
      const found = await exchange(change, by);
      expect(found.written).toBe(true);
      return found;
    },
    async notMade(change) {
      const { version, record, fence } = await look();
      const found = await exchange(change);
      expect(found).toMatchObject({ written: false, version, record, fence });
      expect(await look()).toMatchObject({ version, record, fence });
      return found;
    },
    get table() {
      return table;
    },
    get key() {
      return key;
    },
  };
}
