import { passTime } from '../support/virtual-time.js';
import type { ReadWritePolicy } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { random } from '../support/random.js';
import { sideOf } from './kinds.js';
import { queued } from './misbehaviour.js';
import { locksOpener, type LocksOpener } from './open-locks.js';
import { type Call, OrderedCalls } from './ordered-calls.js';
import { patient, type Setting } from './setting.js';

/** A record of two fields that belong together, and that nothing guards: a reader may see one new and one old while another one writes. */
class TornRecord {
  private left = 0;
  private right = 0;
  private readers = 0;
  private writers = 0;
  /** How often somebody saw it half written, or was in with a writer. */
  torn = 0;
  mostReaders = 0;
  writes = 0;

  async read(): Promise<void> {
    this.mostReaders = Math.max(this.mostReaders, ++this.readers);
    const left = this.left;
    await passTime(random() * 3);
    if (left !== this.right || this.writers > 0) this.torn++;
    this.readers--;
  }

  async write(): Promise<void> {
    if (++this.writers > 1 || this.readers > 0) this.torn++;
    const value = this.left + 1;
    this.left = value;
    await passTime(random() * 3);
    if (this.left !== value) this.torn++;
    this.right = value;
    this.writes++;
    this.writers--;
  }
}

export function readWriteExclusionContract({ open, newKey, makeStore }: Setting): void {
  let key: string;
  beforeEach(() => (key = newKey()));

  const sidesOf = (policy: ReadWritePolicy) => ({
    R: locksOpener(makeStore, sideOf('read', policy)),
    W: locksOpener(makeStore, sideOf('write', policy)),
  });
  const sides = { fair: sidesOf('fair'), readers: sidesOf('readers'), writers: sidesOf('writers') };

  describe('G2 many readers or one writer', () => {
    const work = async (guard: (side: 'read' | 'write', section: () => Promise<void>) => Promise<unknown>) => {
      const record = new TornRecord();
      await Promise.all(
        Array.from({ length: 300 }, (_, n) => (n % 10 ? guard('read', () => record.read()) : guard('write', () => record.write()))),
      );
      return record;
    };

    it('is what keeps a record whole: without a lock it is seen torn', async () => {
      expect((await work((_side, section) => section())).torn).toBeGreaterThan(0);
    });

    it.each<ReadWritePolicy>(['fair', 'readers', 'writers'])(
      'keeps a record whole that 300 callers of two Locks read and write (policy: %p)',
      async (policy) => {
        const all = [open(), open()];
        let calls = 0;
        const record = await work((side, section) =>
          all[calls++ % 2]!.readWriteLock(key, { policy })[side].using(section, { ...patient, fair: calls % 3 === 0 }),
        );
        expect(record).toMatchObject({ torn: 0, writes: 30 });
        expect(record.mostReaders).toBeGreaterThan(1);
      },
    );
  });

  it.each<[ReadWritePolicy, string[], string[]]>([
    ['fair', ['R1', 'W1', 'R2', 'R3', 'W2', 'W3', 'R4'], ['R1', 'W1', 'R2 R3', 'W2', 'W3', 'R4']],
    ['readers', ['W1', 'R1', 'W2', 'R2', 'R3'], ['R1 R2 R3', 'W1', 'W2']],
    ['writers', ['R1', 'W1', 'R2', 'R3', 'W2'], ['W1', 'W2', 'R1 R2 R3']],
  ])('of the waiters policy %p lets in, of %j, %j', async (policy, waiting, groups) => {
    const ordered = new OrderedCalls();
    const take = (name: string) => ordered.take(name, sides[policy][name[0] as 'R' | 'W'], key);
    const first = await take('W0');
    const calls = new Map<string, Call>();
    for (const name of waiting) calls.set(name, await take(name));
    first.end();
    const seen = ['W0'];
    for (const group of groups.map((names) => names.split(' '))) {
      await eventually(() => ordered.entered.length === seen.length + group.length);
      expect(ordered.entered.slice(seen.length).sort()).toEqual(group);
      seen.push(...group);
      for (const name of group) calls.get(name)!.end();
    }
    for (const { ended } of calls.values()) await ended;
  });

  describe('policy "fair" starves neither side', () => {
    const STREAMS = 8;

    /** Streams of sections of one side that never end by themselves. Returns how many began since the other side had its place. */
    async function sectionsUntilIn(stream: 'read' | 'write', { open: openOther }: LocksOpener, fair = false): Promise<number> {
      const all = [open(), open()];
      let sections = 0;
      let isOver = false;
      const section = () => {
        sections++;
        return passTime(1 + random() * 3);
      };
      const run = async (n: number) => {
        while (!isOver) await all[n % 2]!.readWriteLock(key)[stream].using(section, { ...patient, fair });
      };
      const streams = Array.from({ length: STREAMS }, (_, n) => run(n));
      await eventually(() => sections > 3 * STREAMS);
      let before = Infinity;
      const other = openOther({ misbehaving: queued(() => (before = Math.min(before, sections))) });
      const until = await other.using(key, () => sections, patient);
      isOver = true;
      await Promise.all(streams);
      return until - before;
    }

    // Each of the stream may be in or ahead once, and comes behind with its next call.
    it('a writer gets in among readers who never stop', async () => {
      for (let round = 0; round < 10; round++) expect(await sectionsUntilIn('read', sides.fair.W)).toBeLessThanOrEqual(STREAMS);
    });

    // The writers of each of the two Locks pass the key on 32 times at most, unless they are fair.
    it.each([
      { fair: true, most: STREAMS },
      { fair: false, most: STREAMS + 2 * 32 },
    ])('a reader gets in among writers who never stop, $fair', async ({ fair, most }) => {
      for (let round = 0; round < 5; round++) expect(await sectionsUntilIn('write', sides.fair.R, fair)).toBeLessThanOrEqual(most);
    });
  });
}
