import {
  apply,
  emptyData,
  freshAlerts,
  idOf,
  inFrozenOrder,
  prefixesIn,
  readAddress,
  visibleRows,
  writeAddress,
  type Data,
  type View,
} from '../../../lib/dashboard/page/state.js';
import { lengthOf } from '../../../lib/dashboard/page/words.js';
import { random } from '../../support/random.js';
import { hello, NOW, note, party, row } from './rows.js';

const view = (given: Partial<View> = {}): View => ({ ...readAddress(''), ...given });
const keysOf = (data: Data, given: Partial<View> = {}): string[] => visibleRows(data, view(given), NOW).map(({ key }) => key);
function dataOf(...rows: ReturnType<typeof row>[]): Data {
  const data = emptyData();
  apply.delta(data, { isFirst: true, put: rows, drop: [] }, NOW);
  return data;
}

describe('the rows', () => {
  it('come in parts, of which the first one replaces all', () => {
    const data = dataOf(row('old'));
    apply.delta(data, { isFirst: true, put: [row('a')], drop: [] }, NOW);
    apply.delta(data, { put: [row('b')], drop: [] }, NOW);
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

  it('finds all words of the search in the key, the label, and the processes of the holder and the waiters', () => {
    const data = dataOf(
      row('order:42', { waiters: 1, waitingIn: ['jobs@b7:1'] }),
      row('order:43', { holder: party({ app: 'billing', host: 'f1', label: 'Invoice.book' }) }),
    );
    expect(keysOf(data, { query: 'ORDER' })).toHaveLength(2);
    expect(keysOf(data, { query: 'order book' })).toEqual(['order:43']);
    expect(keysOf(data, { query: 'billing@f1:1' })).toEqual(['order:43']);
    expect(keysOf(data, { query: 'jobs@b7:1' })).toEqual(['order:42']);
    expect(keysOf(data, { query: 'order nothing' })).toEqual([]);
  });

  it('filters by waiters, age, leaders and store', () => {
    const ancient = party({ since: NOW - 9e8 });
    const data = dataOf(
      row('a'),
      row('b', { waiters: 1 }),
      row('c', { holder: ancient }),
      row('x-leader', { kind: 'leader election', holder: ancient }),
      row('cheerleader', { holder: party() }),
      row('d', { store: 'other', holder: null }),
    );
    expect(keysOf(data, { filter: 'contended' })).toEqual(['b']);
    expect(keysOf(data, { filter: 'old' })).toEqual(['c']);
    expect(keysOf(data, { filter: 'leaders' })).toEqual(['x-leader']);
    expect(keysOf(data, { filter: 'held' })).toHaveLength(5);
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

it('the time is that of the clock of the server', () => {
  const data = emptyData();
  apply.hello(data, hello({ now: NOW }), NOW - 90_000);
  expect(data.offset).toBe(90_000);
});

it('the keys of a tenant are counted, and searched by their prefix', () => {
  const data = dataOf(row('a:1', { waiters: 2 }), row('a:2'), row('b:a:1'), row('none'));
  const rows = (query: string) => visibleRows(data, view({ query }), NOW);
  expect(prefixesIn(rows(''), '')).toEqual([
    ['a:', 2, 2],
    ['b:', 1, 0],
  ]);
  expect(rows('^a:').map(({ key }) => key)).toEqual(['a:1', 'a:2']);
  expect(prefixesIn(rows('^b:'), '^b:')).toEqual([['b:a:', 1, 0]]);
});

it('events are kept once each, the newest first, and one that has grown replaces itself', () => {
  const data = emptyData();
  apply.notes(data, [note('a', { at: 1 }), note('b', { at: 3 })], NOW);
  apply.notes(data, [note('b', { at: 4, firstAt: 3, count: 2, process: 'several processes' }), note('c', { at: 2 })], NOW);
  expect(data.notes.map(({ key, count }) => [key, count])).toEqual([
    ['b', 2],
    ['c', 1],
    ['a', 1],
  ]);
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
    {
      open: { store: 'other', key: 'x' },
      store: 'default',
      query: 'a b',
      filter: 'contended',
      notes: 'lost',
      sort: 'age',
      isReversed: true,
    },
  ])('has the whole view: %j', (given) => {
    expect(readAddress(writeAddress(view(given), ''))).toEqual(view(given));
  });

  it('opens a key of a store, and keeps what is not of the page', () => {
    expect(readAddress('?store=default&key=order:42').open).toEqual({ store: 'default', key: 'order:42' });
    expect(writeAddress(view(), '?theme=x')).toBe('?theme=x');
    expect(writeAddress(view({ query: 'x' }), '?theme=x')).toBe('?theme=x&q=x');
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

it.each([
  ['2h', 7_200_000],
  ['1 h 30 min', 5_400_000],
  ['until 17:00', 3_600_000],
  ['until 15:00', 82_800_000],
  ['0s', null],
  ['soon', null],
])('a time of %j is %p ms', (text, length) => {
  expect(lengthOf(text, new Date(2030, 0, 15, 16, 0).getTime())).toBe(length);
});
