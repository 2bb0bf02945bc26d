import { TOUCH, VOID } from '../../stores/records/record.table.js';
import { eventually } from './eventually.js';
import { FREE, HOUR, type TableOpener } from './open-tables.js';
import { describe, expect, it } from './runner.js';

/**
 * One change: when it is made, its version, its fence.
 *
 * @param sweep deletes the row of a key, as a table with a clock does an hour after its end.
 */
export function tableChangesContract(setting: TableOpener, sweep?: (key: string) => Promise<unknown>): void {
  const { open, newKey, exchange, look, time, made, notMade, fenced, isTimed } = setting;
  const timed = isTimed ? { time: expect.any(Number) } : {};

  describe('a poll', () => {
    it('finds nothing where nothing was written, and tells the time of a table that has one', async () => {
      expect(await look()).toEqual({ written: false, version: '', record: null, fence: 0, ...timed });
    });

    it('changes nothing, and finds what was written last, by whichever table', async () => {
      const { version } = await made({ record: 'one', tokens: 2, fence: 7 });
      for (let i = 0; i < 3; i++) expect(await look()).toMatchObject({ written: false, version, record: 'one', ...fenced(7) });
      const next = await made({ expected: version, record: 'two' }, open());
      expect(await look()).toMatchObject({ version: next.version, record: 'two', ...fenced(7) });
      expect(await look(setting.key, open())).toMatchObject({ version: next.version, record: 'two', ...fenced(7) });
    });

    if (!isTimed) return;
    it('tells a time that goes on as ours does, the same to all', async () => {
      const other = open();
      const [start, first] = [performance.now(), await time()];
      const second = (await look(setting.key, other)).time!;
      await eventually(async () => (await time()) >= second + 50);
      const [end, last] = [performance.now(), (await look(setting.key, other)).time!];
      expect(second).toBeGreaterThanOrEqual(first - 2);
      expect(last - first).toBeLessThanOrEqual(end - start + 1_000);
    });
  });

  describe('a touch', () => {
    it('gives the row another version and leaves it as it is, so that changes under way are not made', async () => {
      const { version } = await made({ record: 'one', tokens: 2, fence: 7 });
      const touched = await exchange({ expected: TOUCH, record: 'other', tokens: 5, fence: 50 });
      expect(touched).toMatchObject({ written: false, record: 'one', ...fenced(7), ...timed });
      expect(touched.version).not.toBe(version);
      expect(await look()).toMatchObject({ version: touched.version, record: 'one', ...fenced(7) });
      await notMade({ expected: version, record: 'two' });
      await made({ expected: touched.version, record: 'two' });
    });

    it('of no row finds that, and makes none', async () => {
      expect(await exchange({ expected: TOUCH, record: 'other' })).toMatchObject({ written: false, version: '', record: null });
      expect(await look()).toMatchObject({ version: '', record: null });
      await made({ expected: VOID });
    });

    if (!isTimed) return;
    it('of a free row finds that', async () => {
      const { version } = await made({ ...FREE, tokens: 1, fence: 7 });
      const touched = await exchange({ expected: TOUCH });
      expect(touched).toMatchObject({ written: false, record: null, fence: 7 });
      expect(touched.version).not.toBe(version);
      await made({ expected: VOID, record: 'two' });
    });
  });

  describe('a change of a key', () => {
    it('that has no row is made by VOID only', async () => {
      await made({ key: newKey() });
      const { version } = await made({ key: newKey() });
      expect(version).not.toBe('');
      for (const other of isTimed ? [version, '12345'] : [version])
        expect(await exchange({ expected: other })).toMatchObject({ written: false, version: '', record: null });
      await made({ expected: VOID });
    });

    it('that has a record is made by its version only, gives it another one, and else says what is there', async () => {
      const { version } = await made({ record: 'one', tokens: 1, fence: 5 });
      const found = await exchange({ expected: VOID, record: 'two', tokens: 1, fence: 50 });
      expect(found).toMatchObject({ written: false, version, record: 'one', ...fenced(5) });
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

    if (!isTimed) return;
    it('whose record has ended by the clock of the table is made by VOID and by its version, not before that', async () => {
      const endsAt = (await time()) + 250;
      const { version } = await made({ record: 'ended', endsAt });
      await eventually(async () => {
        const found = await exchange({ expected: VOID, record: 'next' });
        if (found.written) expect(await time()).toBeGreaterThanOrEqual(endsAt);
        else {
          expect(found).toMatchObject({ version });
          expect([null, 'ended']).toContain(found.record);
        }
        return found.written;
      });
      const old = await made({ expected: (await look()).version, record: 'old', endsAt: 1 });
      expect(await look()).toMatchObject({ version: old.version, record: null });
      await made({ expected: old.version, record: 'revived' });
      expect(await look()).toMatchObject({ record: 'revived' });
    });

    it('that is free is made by VOID and by its version', async () => {
      const taken = await made({ record: 'one' });
      const freed = await made({ expected: taken.version, ...FREE });
      expect(await look()).toMatchObject({ version: freed.version, record: null });
      const again = await made({ expected: VOID, record: 'two' });
      const byVersion = await made({ expected: again.version, ...FREE });
      await made({ expected: byVersion.version, record: 'three' });
    });

    it('that is free, but ends later, is made by its version only until then: a late request must not find it void', async () => {
      const freed = await made({ record: null });
      await notMade({ expected: VOID, record: 'late' });
      expect(await look()).toMatchObject({ version: freed.version, record: null });
      const endsAt = (await time()) + 150;
      await made({ expected: freed.version, record: null, endsAt });
      await eventually(async () => (await exchange({ expected: VOID, record: 'next' })).written);
      expect(await time()).toBeGreaterThanOrEqual(endsAt);
    });

    it('is made only once the clock of the table has passed its notBefore', async () => {
      const { version } = await made({ record: 'one' });
      const notBefore = (await time()) + 200;
      await notMade({ expected: version, record: 'early', notBefore: notBefore + HOUR });
      await eventually(async () => {
        const found = await exchange({ expected: version, record: 'two', notBefore });
        if (found.written) expect(await time()).toBeGreaterThanOrEqual(notBefore);
        return found.written;
      });
      await made({ expected: (await look()).version, record: 'three', notBefore: (await time()) - 1 });
    });

    it('may be lazy', async () => {
      const { version } = await made({ record: 'one', isLazy: true });
      await made({ expected: version, record: null, isLazy: true });
      expect(await look()).toMatchObject({ record: null });
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
          versions.push((await made({ expected: VOID, record: 'same' })).version);
          if (isTimed) versions.push((await made({ expected: versions.at(-1)!, ...FREE })).version);
          await sweep(setting.key);
          expect(await look()).toMatchObject({ version: '', record: null, ...fenced(0) });
          for (const old of versions) expect(await exchange({ expected: old })).toMatchObject({ written: false, version: '' });
        }
        expect(new Set(versions).size).toBe(versions.length);
      });
    }

    if (!isTimed) return;
    it('never comes again, however often the key is freed and taken', async () => {
      const versions: string[] = [];
      for (let i = 0; i < 20; i++) {
        versions.push((await made({ expected: i === 0 ? VOID : versions.at(-1)!, record: 'same', endsAt: 1 })).version);
        versions.push((await made({ expected: i % 2 ? versions.at(-1)! : VOID, ...FREE })).version);
      }
      expect(new Set(versions).size).toBe(40);
      for (const old of versions.slice(0, -1)) await notMade({ expected: old });
    });
  });

  if (!isTimed) return;
  describe('the fence', () => {
    it('becomes the larger one of what is given and its old value plus the tokens', async () => {
      const first = await made({ tokens: 3, fence: 1_790_000_000_000_000 });
      expect(first.fence).toBe(1_790_000_000_000_000);
      const second = await made({ expected: first.version, tokens: 3, fence: 5 });
      expect(second.fence).toBe(1_790_000_000_000_003);
      const third = await made({ expected: second.version, tokens: 1, fence: 1_790_000_000_000_010 });
      expect(third.fence).toBe(1_790_000_000_000_010);
      expect(await look()).toMatchObject({ fence: 1_790_000_000_000_010 });
    });

    it('stays where no token is reserved', async () => {
      const first = await made({ tokens: 1, fence: 40 });
      const second = await made({ expected: first.version, tokens: 0, fence: 50 });
      expect(await look()).toMatchObject({ version: second.version, fence: 40 });
      await notMade({ expected: first.version, tokens: 9, fence: 90 });
    });

    it('is 0 in a row that reserved none', async () => {
      await made({ tokens: 0, fence: 50 });
      expect(await look()).toMatchObject({ fence: 0 });
    });

    it('outlives a key that is freed, and one whose record has ended', async () => {
      const first = await made({ tokens: 1, fence: 40 });
      await made({ expected: first.version, ...FREE });
      expect(await look()).toMatchObject({ record: null, fence: 40 });
      expect(await made({ expected: VOID, tokens: 2, fence: 1, endsAt: 1 })).toMatchObject({ fence: 42 });
      expect(await look()).toMatchObject({ record: null, fence: 42 });
      expect(await made({ expected: VOID, tokens: 1, fence: 1 })).toMatchObject({ fence: 43 });
    });
  });
}
