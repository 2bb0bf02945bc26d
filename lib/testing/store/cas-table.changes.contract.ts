import { TOUCH, VOID } from '../../stores/records/record.table.js';
import type { TableOpener } from './open-tables.js';
import { describe, expect, it } from './runner.js';

/** @param sweep deletes the row of a key. */
export function casChangesContract(setting: TableOpener, sweep?: (key: string) => Promise<unknown>): void {
  const { open, newKey, exchange, look, made, notMade, changeOf } = setting;

  describe('a poll', () => {
    it('finds nothing where nothing was written', async () => {
      expect(await look()).toMatchObject({ written: false, version: '', record: null });
    });

    it('changes nothing, and finds what was written last, by whichever table', async () => {
      const { version } = await made({ record: 'one' });
      for (let i = 0; i < 3; i++) expect(await look()).toMatchObject({ written: false, version, record: 'one' });
      const second = await made({ expected: version, record: 'two' }, open());
      expect(await look()).toMatchObject({ version: second.version, record: 'two' });
      expect(await look(setting.key, open())).toMatchObject({ version: second.version, record: 'two' });
    });
  });

  describe('a touch', () => {
    it('gives the row another version and leaves its text, so that changes under way are not made', async () => {
      const { version } = await made({ record: 'one' });
      const touched = await exchange({ expected: TOUCH, record: 'other' });
      expect(touched).toMatchObject({ written: false, record: 'one' });
      expect(touched.version).not.toBe(version);
      expect(await look()).toMatchObject({ version: touched.version, record: 'one' });
      await notMade({ expected: version, record: 'two' });
      await made({ expected: touched.version, record: 'two' });
    });

    it('of no row finds that, and makes none', async () => {
      expect(await exchange({ expected: TOUCH, record: 'other' })).toMatchObject({ written: false, version: '', record: null });
      expect(await look()).toMatchObject({ version: '', record: null });
      await made({ expected: VOID });
    });
  });

  describe('a change of a key', () => {
    it('that has no row is made only where none is expected', async () => {
      await made({ key: newKey() });
      const { version } = await made({ key: newKey() });
      expect(version).not.toBe('');
      await notMade({ expected: version });
      await made({ expected: VOID });
    });

    it('that has a row is made at its version only, gives it another one, and else says what is there', async () => {
      const { version } = await made({ record: 'one' });
      await notMade({ expected: VOID, record: 'two' });
      const next = await made({ expected: version, record: 'two' });
      expect(next.version).not.toBe(version);
      await notMade({ expected: version, record: 'three' });
      expect(await exchange({ expected: version })).toMatchObject({ written: false, version: next.version, record: 'two' });
    });

    it('is made by exactly one of many writers at one version', async () => {
      const tables = Array.from({ length: 6 }, open);
      let { version } = await made({ record: 'first' });
      for (let round = 0; round < 10; round++) {
        const found = await Promise.all(tables.map((each, i) => exchange({ expected: version, record: `by ${i}` }, each)));
        expect(found.filter(({ written }) => written)).toHaveLength(1);
        const winner = found.findIndex(({ written }) => written);
        ({ version } = found[winner]!);
        expect(await look()).toMatchObject({ version, record: `by ${winner}` });
      }
    });

    it('does not depend on the changes of other keys in the same exchange', async () => {
      const [absent, taken, changed, looked, touched] = Array.from({ length: 5 }, newKey) as [string, string, string, string, string];
      const ofTaken = await made({ key: taken, record: 'taken' });
      const ofChanged = await made({ key: changed, record: 'old' });
      await made({ key: looked, record: 'looked' });
      const ofTouched = await made({ key: touched, record: 'touched' });
      const found = await Promise.all(
        setting.table.exchange([
          changeOf({ key: taken }),
          changeOf({ key: absent, record: 'new' }),
          changeOf({ key: looked, expected: undefined }),
          changeOf({ key: changed, expected: ofChanged.version, record: 'changed' }),
          changeOf({ key: touched, expected: TOUCH }),
        ]),
      );
      expect(found).toMatchObject([
        { written: false, version: ofTaken.version, record: 'taken' },
        { written: true },
        { written: false, record: 'looked' },
        { written: true },
        { written: false, record: 'touched' },
      ]);
      expect(found[4]!.version).not.toBe(ofTouched.version);
      expect(await look(absent)).toMatchObject({ version: found[1]!.version, record: 'new' });
      expect(await look(changed)).toMatchObject({ version: found[3]!.version, record: 'changed' });
    });
  });

  describe('a version', () => {
    it('never comes again, however often the row is written and touched', async () => {
      const versions: string[] = [];
      for (let i = 0; i < 20; i++) {
        versions.push((await made({ expected: versions.at(-1) ?? VOID, record: 'same' })).version);
        versions.push((await exchange({ expected: TOUCH })).version);
      }
      expect(new Set(versions).size).toBe(40);
      for (const old of versions.slice(0, -1)) await notMade({ expected: old });
    });

    if (sweep) {
      it('never comes again after the row was deleted', async () => {
        const versions: string[] = [];
        for (let i = 0; i < 5; i++) {
          versions.push((await made({ record: 'same' })).version);
          await sweep(setting.key);
          expect(await look()).toMatchObject({ version: '', record: null });
          for (const old of versions) expect(await exchange({ expected: old })).toMatchObject({ written: false, version: '' });
        }
        expect(new Set(versions).size).toBe(5);
      });
    }
  });
}
