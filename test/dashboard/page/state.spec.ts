import type { View } from '../../../lib/dashboard/page/state.js';
import { columns, freshAlarms, idOf, isOld, keptWords, readAddress, visibleRows, writeAddress } from '../../../lib/dashboard/page/state.js';
import { lengthOf, span, timeOf } from '../../../lib/dashboard/page/words.js';
import { NOW, party, row, state } from './rows.js';

const view = (given: Partial<View> = {}): View => ({ ...readAddress(''), ...given });
const since = (age: number): ReturnType<typeof party> => party({ since: NOW - age });

describe('the table', () => {
  const rows = [
    row('young'),
    row('old', { holder: since(9e6) }),
    row('one', { waiters: 1 }),
    row('many', { waiters: 30 }),
    row('free', { holder: null }),
  ];
  const keysOf = (given: Partial<View> = {}): string[] => visibleRows(state({ rows }), view(given)).map(({ key }) => key);

  it('shows first what most callers wait for, then what is held the longest', () => {
    expect(keysOf()).toEqual(['many', 'one', 'old', 'young', 'free']);
    expect(keysOf({ isReversed: true })).toEqual(['free', 'young', 'old', 'one', 'many']);
    expect(keysOf({ sort: 'key' })).toEqual(['free', 'many', 'old', 'one', 'young']);
    expect(keysOf({ sort: 'age' })[0]).toBe('old');
    for (const sort of columns) expect(keysOf({ sort }).length).toBe(rows.length);
  });

  it.each([
    ['contended', ['many', 'one']],
    ['old', ['old']],
    ['held', ['many', 'one', 'old', 'young']],
  ] as const)('filters: %s', (filter, keys) => expect(keysOf({ filter })).toEqual(keys));

  it('calls a key old that is held for five minutes, unless it is kept or a leader has it', () => {
    expect(isOld(row('a', { holder: since(400_000) }), NOW)).toBe(true);
    expect(isOld(row('a', { holder: party({ since: NOW - 400_000, phase: 'kept' }) }), NOW)).toBe(false);
    expect(isOld(row('a', { kind: 'leader election', holder: since(400_000) }), NOW)).toBe(false);
  });
});

it.each([
  [{ phase: 'held' }, undefined],
  [{ phase: 'kept' }, /^kept until 18:57$/],
  [{ phase: 'handed over' }, /^handed over until 18:57, not adopted yet$/],
  [{ phase: 'kept', app: 'anna:-incident-812', label: null, token: null }, /^held by hand: incident 812, until 18:57$/],
] as const)('a holder is %j', (given, words) => {
  const at = new Date(2030, 0, 15, 16, 0).getTime();
  const endsAt = new Date(2030, 0, 15, 18, 57).getTime();
  expect(keptWords(party({ ...given, endsAt }), at)).toEqual(words && expect.stringMatching(words));
});

it('an alarm is spoken once, whatever its numbers, and again when it comes back', () => {
  const spoken = new Set<string>();
  const deadlock = { kind: 'deadlock', text: 'ends in 23 s', row: { store: 'default', key: 'a' } } as const;
  const outage = { kind: 'outage', text: 'does not answer' } as const;
  expect(freshAlarms(spoken, [deadlock])).toEqual([deadlock]);
  expect(freshAlarms(spoken, [{ ...deadlock, text: 'ends in 22 s' }, outage])).toEqual([outage]);
  expect(freshAlarms(spoken, [outage])).toEqual([]);
  expect(freshAlarms(spoken, [deadlock, outage])).toEqual([deadlock]);
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

it('a time of another day has its date, and fifteen minutes are not 892 seconds', () => {
  const now = new Date(2030, 0, 15, 16, 0).getTime();
  expect(timeOf(now - 3_600_000, now)).toBe('15:00:00');
  expect(timeOf(now - 24 * 3_600_000, now)).toMatch(/14.*16:00:00/);
  expect([span(892_000), span(920_000), span(59_000)]).toEqual(['14 min', '15 min', '59 s']);
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
