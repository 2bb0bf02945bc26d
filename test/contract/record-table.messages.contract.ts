import { type Found, type RecordTable, VOID } from '../../lib/stores/records/record.table.js';
import { eventually } from '../support/eventually.js';
import { tableOpener } from './open-tables.js';

/** The messages of a change. */
export function tableMessagesContract(makeTable: () => RecordTable): void {
  const setting = tableOpener(makeTable);
  const { open, exchange, look, made } = setting;

  describe('a message', () => {
    const owner = 'an app@host:1:0f8fad5b-d9cb-469f-a165-70867728950e';

    /** Another process, and what it has heard. */
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

    it('is heard by nobody who has stopped to listen', async () => {
      const { inbox, heard, by } = await listener('last');
      const stop = by.wakeUps!.listen(owner, () => heard.push(owner));
      stop();
      const { version } = await made({ messages: [{ inbox, text: owner }] });
      await made({ expected: version, messages: [{ inbox, text: 'last' }] });
      await eventually(() => expect(heard).toEqual(['last']));
    });
  });
}
