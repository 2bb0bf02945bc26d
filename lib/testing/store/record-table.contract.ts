import { type Found, type RecordTable, VOID } from '../../stores/records/record.table.js';
import { eventually } from './eventually.js';
import { FREE, tableOpener, type TableOpener } from './open-tables.js';
import { tableChangesContract } from './record-table.changes.contract.js';
import { tableClientsContract } from './record-table.clients.contract.js';
import { describe, expect, it, runBy, type TestRunner } from './runner.js';

/** Options of the contracts of tables. */
export interface TableContractOptions {
  /** Default: the globals of Jest, and of Vitest with `globals: true`. */
  readonly runner?: TestRunner;
  /** Deletes the row of a key, as the table itself does an hour after its end. */
  readonly sweep?: (key: string) => Promise<unknown>;
}

/** Options of {@link recordTableContract}. */
export interface RecordTableContractOptions extends TableContractOptions {
  /** Parts that the table does not have. */
  readonly without?: readonly ('wakeUps' | 'keys')[];
}

/**
 * The promises that the locks need of a table of records.
 *
 * @param makeTable opens the table once more, onto the same data, with clients of its own: as another process would. Each is closed when its test ends.
 */
export function recordTableContract(
  name: string,
  makeTable: () => RecordTable,
  { without = [], sweep, runner }: RecordTableContractOptions = {},
): void {
  runBy(runner);
  describe(`a table of records on ${name}`, () => {
    const setting = tableOpener(makeTable);
    tableChangesContract(setting, sweep);
    tableClientsContract(setting);
    tableTextsContract(setting, !without.includes('keys'));
    if (!without.includes('wakeUps')) tableMessagesContract(setting);
  });
}

/** Odd keys and records. */
export function tableTextsContract(setting: TableOpener, isListed: boolean): void {
  const { open, newKey, look, made } = setting;

  describe('keeps apart', () => {
    for (const [which, one, other] of [
      ['of 512 characters', 'x'.repeat(480) + 'x', 'x'.repeat(480) + 'y'],
      ['of 512 characters, most of four bytes', '🔒'.repeat(240) + '🔒', '🔒'.repeat(240) + '🔓'],
      ['of upper and lower case', 'key', 'KEY'],
      ['with and without an accent', 'cafe', 'café'],
      ['in two forms of Unicode', 'caf\u00e9', 'cafe\u0301'],
      ['with and without a space at the end', 'key', 'key '],
      ['with quotes, backslashes and slashes', `'"\`\\/../$1?:a`, `'"\`\\\\/../$1?:a`],
      ['that look like patterns', '%', '_'],
    ] as const)
      it(`keys ${which}`, async () => {
        const [first, second] = [setting.key + one, setting.key + other];
        await made({ key: first, record: 'first' });
        await made({ key: second, record: 'second' });
        expect(await look(first)).toMatchObject({ record: 'first' });
        expect(await look(second)).toMatchObject({ record: 'second' });
      });

    for (const [which, record] of [
      ['of 100 KB', 'x'.repeat(100_000)],
      ['in Unicode', JSON.stringify({ owner: 'ünï 🔒 \u2028 \u0000 中文', text: `'"\\\n$1 ? :name %s ${'{}'}` })],
      ['that are empty', ''],
    ] as const)
      it(`records ${which}`, async () => {
        const { version } = await made({ record });
        expect(await look()).toMatchObject({ record, version });
        await made({ expected: version, record: `${record}.` });
        expect(await look(setting.key, open())).toMatchObject({ record: `${record}.` });
      });
  });

  if (isListed) {
    it('lists the keys that begin with a prefix, and no others', async () => {
      const prefix = `${newKey()}:'%_\\🔒*[a]`;
      const mine = ['', 'one', 'ONE', 'two%', "it's", 'ü 🔒'].map((end) => prefix + end);
      for (const each of mine) await made({ key: each });
      await made({ key: mine[1], expected: (await look(mine[1])).version, ...FREE });
      for (const other of ['%_', prefix.replace('%', 'x'), prefix.toUpperCase(), prefix.slice(0, -1)])
        await made({ key: newKey() + other });
      const found = new Set<string>();
      for await (const some of setting.table.keys!(prefix)) for (const each of some) found.add(each);
      expect([...found].sort()).toEqual([...mine].sort());
    });
  }
}

/** The messages of a change. */
export function tableMessagesContract(setting: TableOpener): void {
  const { open, exchange, look, made } = setting;

  describe('a message', () => {
    const owner = 'an app@host:1:0f8fad5b-d9cb-469f-a165-70867728950e';

    /** Another process, and the messages that it has received. */
    async function listener(...owners: string[]) {
      const by = open();
      const wakeUps = by.wakeUps!;
      const heard: string[] = [];
      await wakeUps.open((warning) => heard.push(warning));
      expect(wakeUps.isOpen).toBe(true);
      for (const each of owners) wakeUps.listen(each, () => heard.push(each));
      return { inbox: wakeUps.inbox, heard, by };
    }

    it('arrives if and only if its change is made', async () => {
      const { inbox, heard } = await listener('not made', 'look', 'made');
      const { version } = await made({});
      await exchange({ expected: VOID, messages: [{ inbox, text: 'not made' }] });
      await exchange({ expected: undefined, messages: [{ inbox, text: 'look' }] });
      await made({ expected: version, messages: [{ inbox, text: 'made' }] });
      await eventually(() => expect(heard).toContain('made'));
      expect(new Set(heard)).toEqual(new Set(['made']));
    });

    it('arrives when its change can be seen, also if that is lazy', async () => {
      const { inbox, by } = await listener();
      const seen: Promise<Found>[] = [];
      by.wakeUps!.listen(owner, () => seen.push(look(setting.key, by)));
      const first = await made({ record: 'one', messages: [{ inbox, text: owner }] });
      await eventually(() => seen.length > 0);
      expect(await seen[0]).toMatchObject({ version: first.version });
      const second = await made({ expected: first.version, record: 'two', isLazy: true, messages: [{ inbox, text: owner }] });
      await eventually(() => seen.length > 1);
      expect(await seen[1]).toMatchObject({ version: second.version });
    });

    it('arrives once in each inbox that it is for', async () => {
      const [one, other] = [await listener('one', 'two', 'both'), await listener('one', 'two', 'both')];
      await made({
        messages: [
          { inbox: one.inbox, text: 'one' },
          { inbox: other.inbox, text: 'two' },
          { inbox: one.inbox, text: 'both' },
          { inbox: other.inbox, text: 'both' },
        ],
      });
      await eventually(() => expect([one.heard.length, other.heard.length]).toEqual([2, 2]));
      expect(one.heard.sort()).toEqual(['both', 'one']);
      expect(other.heard.sort()).toEqual(['both', 'two']);
    });

    it('has many owners, or long names, or odd ones', async () => {
      const owners = Array.from({ length: 40 }, (_, i) => `${'app'.repeat(i)}-ü🔒'"\\/%@host:${i}:${'0'.repeat(36)}`);
      const { inbox, heard } = await listener(...owners);
      await made({ messages: [{ inbox, text: owners.slice(0, 10).join('\n') }, ...owners.slice(10).map((text) => ({ inbox, text }))] });
      await eventually(() => expect(new Set(heard)).toEqual(new Set(owners)));
    });

    it('tells each owner when to ask, if it says so', async () => {
      const { inbox, by } = await listener();
      const heard: unknown[] = [];
      for (const each of ['now', 'later']) by.wakeUps!.listen(each, (askIn) => heard.push([each, askIn]));
      await made({ messages: [{ inbox, text: 'now\nlater\t250\nnobody' }] });
      await eventually(() => heard.length > 1);
      expect(heard).toEqual([
        ['now', undefined],
        ['later', 250],
      ]);
    });

    it('to an inbox that is gone harms nobody', async () => {
      const { inbox, by } = await listener(owner);
      await by.close();
      const { version } = await made({ messages: [{ inbox, text: owner }] });
      await made({ expected: version, messages: [{ inbox: 'never-was', text: owner }] });
    });

    it('is received by no listener that has stopped', async () => {
      const { inbox, heard, by } = await listener('last');
      const stop = by.wakeUps!.listen(owner, () => heard.push(owner));
      stop();
      const { version } = await made({ messages: [{ inbox, text: owner }] });
      await made({ expected: version, messages: [{ inbox, text: 'last' }] });
      await eventually(() => expect(heard).toEqual(['last']));
    });
  });
}
