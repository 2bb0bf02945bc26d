import { recordStore } from '../../../lib/stores/records/record.store.js';
import type { Change, Found } from '../../../lib/stores/records/record.table.js';
import { MapData, MapTable } from '../../support/map-table.js';

const KEYS = Array.from({ length: 50 }, (_, i) => `key-${i}`);
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

/** Serves one exchange at a time, and answers when it is told to. */
class SlowTable extends MapTable {
  readonly atOnce = 1;
  readonly sizes: number[] = [];
  private answers: (() => void)[] = [];

  override exchange(changes: readonly Change[]): readonly Promise<Found>[] {
    this.sizes.push(changes.length);
    const answered = new Promise<void>((resolve) => this.answers.push(resolve));
    return super.exchange(changes).map((found) => answered.then(() => found));
  }

  answer(): void {
    for (const answer of this.answers.splice(0)) answer();
  }
}

const acquire = (store: ReturnType<typeof recordStore>, key: string): Promise<unknown> =>
  store.mutex.acquire({ key, owner: `owner of ${key}`, ttl: 1_000, queue: false, tokens: 1 });

describe('what comes while a table is busy', () => {
  it('waits, and goes together', async () => {
    const table = new SlowTable();
    const store = recordStore(table);
    const all = Promise.all(
      KEYS.map(async (key) => {
        await turn();
        return acquire(store, key);
      }),
    );
    const first = acquire(store, 'first');
    let isOver = false;
    void all.finally(() => (isOver = true));
    while (!isOver) {
      await turn();
      await turn();
      table.answer();
    }
    expect(await first).toMatchObject({ granted: true });
    expect(await all).toHaveLength(KEYS.length);
    // The first looks, since the clock is not known.
    expect(table.sizes.slice(0, 2)).toEqual([1, KEYS.length + 1]);
  });

  it('goes when a requestTimeout is over, whatever is not answered', async () => {
    const table = new SlowTable(new MapData(), {}, 100);
    const store = recordStore(table);
    await expect(acquire(store, 'first')).rejects.toThrow('did not answer within 100 ms');
    void acquire(store, 'second').catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(table.sizes).toEqual([1, 1]);
  });
});
