import { type RecordTable } from '../../lib/stores/records/record.table.js';
import { FREE, tableOpener } from './open-tables.js';

/** Odd keys and records. */
export function tableTextsContract(makeTable: () => RecordTable, isListed: boolean): void {
  const setting = tableOpener(makeTable);
  const { open, newKey, look, made } = setting;

  describe('keeps apart', () => {
    it.each([
      ['of 512 characters', 'x'.repeat(480) + 'x', 'x'.repeat(480) + 'y'],
      ['of 512 characters, most of four bytes', '🔒'.repeat(240) + '🔒', '🔒'.repeat(240) + '🔓'],
      ['of upper and lower case', 'key', 'KEY'],
      ['with and without an accent', 'cafe', 'café'],
      ['in two forms of Unicode', 'caf\u00e9', 'cafe\u0301'],
      ['with and without a space at the end', 'key', 'key '],
      ['with quotes, backslashes and slashes', `'"\`\\/../$1?:a`, `'"\`\\\\/../$1?:a`],
      ['that look like patterns', '%', '_'],
    ])('keys %s', async (_name, one, other) => {
      const [first, second] = [setting.key + one, setting.key + other];
      await made({ key: first, record: 'first' });
      await made({ key: second, record: 'second' });
      expect(await look(first)).toMatchObject({ record: 'first' });
      expect(await look(second)).toMatchObject({ record: 'second' });
    });

    it.each([
      ['of 100 KB', 'x'.repeat(100_000)],
      ['in Unicode', JSON.stringify({ owner: 'ünï 🔒 \u2028 \u0000 中文', text: `'"\\\n$1 ? :name %s ${'{}'}` })],
      ['that are empty', ''],
    ])('records %s', async (_name, record) => {
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
