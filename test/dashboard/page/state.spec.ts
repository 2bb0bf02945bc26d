import type { Note, Second } from '../../../lib/dashboard/dashboard.protocol.js';
import {
  apply,
  emptyData,
  freshAlerts,
  idOf,
  inFrozenOrder,
  numbersOf,
  readAddress,
  visibleRows,
  writeAddress,
  type Data,
  type View,
} from '../../../lib/dashboard/page/state.js';
import { random } from '../../support/random.js';
import { hello, NOW, party, row, stats } from './rows.js';

const view = (given: Partial<View> = {}): View => ({ ...readAddress(''), ...given });
const keysOf = (data: Data, given: Partial<View> = {}): string[] => visibleRows(data, view(given), NOW).map(({ key }) => key);
const second = (at: number, given: Partial<Second> = {}): Second => {
  return { at, held: 0, waiting: 0, waitP50: null, waitP95: null, holdP95: null, lost: 0, timeouts: 0, ...given };
};
const note = (key: string, given: Partial<Note> = {}): Note => {
  return {
    store: 'default',
    key,
    at: NOW - 1_000,
    event: 'timeout',
    label: null,
    process: 'shop@a1:1',
    reason: null,
    held: null,
    ...given,
  };
};

function dataOf(...rows: ReturnType<typeof row>[]): Data {
  const data = emptyData();
  apply.rows(data, { isFirst: true, rows }, NOW);
  return data;
}

describe('the rows', () => {
  it('come in parts, of which the first one replaces all', () => {
    const data = dataOf(row('old'));
    apply.rows(data, { isFirst: true, rows: [row('a')] }, NOW);
    apply.rows(data, { isFirst: false, rows: [row('b')] }, NOW);
    expect([...data.rows.values()].map(({ key }) => key)).toEqual(['a', 'b']);
  });

  it('change by what is put and dropped, and a key of another store is another key', () => {
    const data = dataOf(row('a'), row('b'), row('a', { store: 'other' }));
    apply.delta(data, { put: [row('a', { waiters: 3 }), row('c')], drop: [{ store: 'default', key: 'b' }] }, NOW);
    expect([...data.rows.values()].map(({ store, key, waiters }) => [store, key, waiters])).toEqual([
      ['default', 'a', 3],
      ['other', 'a', 0],
      ['default', 'c', 0],
    ]);
  });

  it('stay on the screen when the stream begins again, until the first part of the new ones', () => {
    const data = dataOf(row('a'));
    apply.stats(data, stats({ seconds: [second(NOW)] }), NOW);
    apply.hello(data, hello(), NOW);
    expect([data.rows.size, data.seconds.length]).toEqual([1, 0]);
  });
});

describe('the table', () => {
  it('shows first what most callers wait for, then what is held the longest', () => {
    const since = (age: number): ReturnType<typeof party> => party({ since: NOW - age });
    const data = dataOf(
      row('young'),
      row('old', { holder: since(9e6) }),
      row('one', { waiters: 1 }),
      row('many', { waiters: 30 }),
      row('free', { holder: null }),
    );
    expect(keysOf(data)).toEqual(['many', 'one', 'old', 'young', 'free']);
    expect(keysOf(data, { isReversed: true })).toEqual(['free', 'young', 'old', 'one', 'many']);
    expect(keysOf(data, { sort: 'key' })).toEqual(['free', 'many', 'old', 'one', 'young']);
    expect(keysOf(data, { sort: 'age' })[0]).toBe('old');
  });

  it('finds all words of the search in the key, the label and the process', () => {
    const data = dataOf(row('order:42'), row('order:43', { holder: party({ app: 'billing', host: 'f1', label: 'Invoice.book' }) }));
    expect(keysOf(data, { query: 'ORDER' })).toHaveLength(2);
    expect(keysOf(data, { query: 'order book' })).toEqual(['order:43']);
    expect(keysOf(data, { query: 'billing@f1:1' })).toEqual(['order:43']);
    expect(keysOf(data, { query: 'order nothing' })).toEqual([]);
  });

  it('filters by waiters, age, leaders, store and what has happened in the last five minutes', () => {
    const ancient = party({ since: NOW - 9e8 });
    const data = dataOf(
      row('a'),
      row('b', { waiters: 1 }),
      row('c', { holder: ancient }),
      row('leader:x', { holder: ancient }),
      row('d', { store: 'other', holder: null }),
    );
    apply.notes(data, [note('a'), note('b', { at: NOW - 400_000 }), note('c', { event: 'lost' })], NOW);
    expect(keysOf(data, { filter: 'contended' })).toEqual(['b']);
    expect(keysOf(data, { filter: 'old' })).toEqual(['c']);
    expect(keysOf(data, { filter: 'leaders' })).toEqual(['leader:x']);
    expect(keysOf(data, { filter: 'held' })).toHaveLength(4);
    expect(keysOf(data, { filter: 'timeout' })).toEqual(['a']);
    expect(keysOf(data, { filter: 'lost' })).toEqual(['c']);
    expect(keysOf(data, { store: 'other' })).toEqual(['d']);
  });

  it('is right with ten thousand keys', () => {
    const rows = Array.from({ length: 10_000 }, (_, index) => {
      return row(`key-${index}`, { waiters: Math.floor(random() * 20), holder: party({ since: NOW - Math.floor(random() * 1e7) }) });
    });
    const found = visibleRows(dataOf(...rows), view({ filter: 'contended' }), NOW);
    const expected = rows
      .filter(({ waiters }) => waiters > 0)
      .sort((a, b) => b.waiters - a.waiters || (a.holder?.since ?? 0) - (b.holder?.since ?? 0) || (a.key < b.key ? -1 : 1));
    expect(found.map(({ key }) => key)).toEqual(expected.map(({ key }) => key));
  });

  it('keeps its order while it is frozen: what is gone is free, and what is new comes last', () => {
    const data = dataOf(row('c', { waiters: 9 }), row('new', { waiters: 5 }), row('a', { waiters: 2 }));
    const frozen = ['a', 'gone', 'c'].map((key) => ({ ...row(key), id: idOf(row(key)) }));
    const shown = inFrozenOrder(frozen, data, view(), NOW);
    expect(shown.map(({ key, kind, waiters }) => [key, kind, waiters])).toEqual([
      ['a', 'mutex', 2],
      ['gone', 'free', 0],
      ['c', 'mutex', 9],
      ['new', 'mutex', 5],
    ]);
    expect(shown[1]?.holder).toBeNull();
  });
});

describe('the numbers', () => {
  it('are those of the last second, the highest wait of a minute and the sums of five', () => {
    const data = emptyData();
    const waits = [second(NOW - 70_000, { waitP95: 9_000 }), second(NOW - 30_000, { waitP95: 800 })];
    const sums = [second(NOW - 400_000, { lost: 8, timeouts: 8 }), second(NOW - 200_000, { lost: 1, timeouts: 2 })];
    apply.stats(data, stats({ seconds: [...sums, ...waits, second(NOW, { held: 12, waiting: 3, timeouts: 1 })] }), NOW);
    expect(numbersOf(data)).toEqual({ held: 12, waiting: 3, waitP95: 800, lost: 1, timeouts: 3 });
  });

  it('are of ten minutes, and no second counts twice', () => {
    const data = emptyData();
    const tenMinutes = Array.from({ length: 600 }, (_, index) => second(NOW + index * 1_000));
    apply.stats(data, stats({ seconds: tenMinutes }), NOW);
    apply.stats(data, stats({ seconds: [...tenMinutes.slice(-2), second(NOW + 600_000)] }), NOW);
    expect([data.seconds.length, data.seconds[0]?.at, data.seconds.at(-1)?.at]).toEqual([600, NOW + 1_000, NOW + 600_000]);
  });

  it('go by the clock of the server', () => {
    const data = emptyData();
    apply.hello(data, hello({ now: NOW }), NOW - 90_000);
    expect(data.offset).toBe(90_000);
  });
});

it('events are kept once each, the newest first', () => {
  const data = emptyData();
  apply.notes(data, [note('a', { at: 1 }), note('b', { at: 3 })], NOW);
  apply.notes(data, [note('b', { at: 3 }), note('c', { at: 2 })], NOW);
  expect(data.notes.map(({ key }) => key)).toEqual(['b', 'c', 'a']);
});

it('an alert is spoken once, whatever its numbers, and again when it comes back', () => {
  const spoken = new Set<string>();
  const deadlock = { kind: 'deadlock', text: 'ends in 23 s', row: { store: 'default', key: 'a' } } as const;
  const doctor = { kind: 'doctor', text: 'evicts keys' } as const;
  expect(freshAlerts(spoken, [deadlock])).toEqual([deadlock]);
  expect(freshAlerts(spoken, [{ ...deadlock, text: 'ends in 22 s' }, doctor])).toEqual([doctor]);
  expect(freshAlerts(spoken, [doctor])).toEqual([]);
  expect(freshAlerts(spoken, [deadlock, doctor])).toEqual([deadlock]);
});

describe('the address', () => {
  it.each<Partial<View>>([
    {},
    { open: { store: 'default', key: 'a&b=<c> ä' } },
    { open: { store: 'other', key: 'x' }, store: 'default', query: 'a b', filter: 'contended', sort: 'age', isReversed: true },
  ])('has the whole view: %j', (given) => {
    expect(readAddress(writeAddress(view(given), ''))).toEqual(view(given));
  });

  it('opens a key of a store, and keeps what is not of the page', () => {
    expect(readAddress('?store=default&key=order:42').open).toEqual({ store: 'default', key: 'order:42' });
    expect(writeAddress(view(), '?demo')).toBe('?demo');
    expect(writeAddress(view({ query: 'x' }), '?demo')).toBe('?demo&q=x');
    expect(writeAddress(view(), '?q=x')).toBe('');
  });

  it('with unknown words shows all', () => {
    expect(readAddress('?show=nothing&sort=colour')).toEqual(view());
    expect(readAddress('?store=other').store).toBe('other');
  });
});

it('a key has another name in another store', () => {
  expect(idOf({ store: 'a', key: 'b' })).not.toBe(idOf({ store: 'b', key: 'a' }));
});
