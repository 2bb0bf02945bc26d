/** The view of the page without the DOM: what is shown of a state, in which order, and its address. */
import type { PageAlarm, Party, Row, RowName, PageState } from '../dashboard.protocol.js';
import { timeOf, visible } from './words.js';

/** A holder is old after this time. Leaders hold for days by design. */
const OLD = 300_000;

export const filters = ['all', 'contended', 'old', 'held'] as const;
export const noteFilters = ['', 'lost', 'timeout', 'failed', 'forced'] as const;
export const columns = ['key', 'kind', 'holder', 'label', 'age', 'ends', 'waiters', 'wait'] as const;
export type Filter = (typeof filters)[number];
export type Column = (typeof columns)[number];

/** The choices of the operator, which the address has. */
export interface View {
  readonly store: string;
  readonly query: string;
  readonly filter: Filter;
  /** The events that are listed; `''`: all. */
  readonly notes: (typeof noteFilters)[number];
  readonly sort: Column;
  readonly isReversed: boolean;
  readonly open: RowName | null;
}

/** Neither a store nor a key has control characters. */
export function idOf({ store, key }: RowName): string {
  return `${store}\n${key}`;
}

export function processOf({ app, host, pid }: { app: string; host: string; pid: number }): string {
  return `${app}@${host}:${pid}`;
}

/** `kept until 18:57`, `held by hand: incident 812, until 18:24`; `undefined`: it is held as usual. A hold by hand has the reason as its app, without spaces. */
export function keptWords({ app, label, phase, endsAt, token }: Party, now: number): string | undefined {
  if (phase === 'held') return undefined;
  const until = endsAt === null ? '' : ` until ${timeOf(endsAt, now, false)}`;
  if (phase === 'handed over') return `handed over${until}, not adopted yet`;
  const [, reason] = /^[^:]+:(.+)$/.exec(app) ?? [];
  if (reason === undefined || label !== null || token !== null) return `kept${until}`;
  return `held by hand: ${visible(reason).replaceAll('-', ' ').trim()},${until}`;
}

export function isOld({ holder, kind }: Row, now: number): boolean {
  return holder?.since != null && holder.phase === 'held' && now - holder.since > OLD && kind !== 'leader election';
}

const sortValues: Record<Column, (row: Row) => string | number> = {
  key: ({ key }) => key,
  kind: ({ kind }) => kind,
  holder: ({ holder }) => (holder ? processOf(holder) : '~'),
  label: ({ holder }) => holder?.label ?? '~',
  age: ({ holder }) => holder?.since ?? Infinity,
  ends: ({ holder }) => holder?.endsAt ?? Infinity,
  waiters: ({ waiters }) => -waiters,
  wait: ({ waitingSince }) => waitingSince ?? Infinity,
};

function compareBy(column: Column, a: Row, b: Row): number {
  const first = sortValues[column](a);
  const second = sortValues[column](b);
  return first < second ? -1 : Number(first > second);
}

/** The rows that the view asks for, the first one first. The server has searched them. */
export function visibleRows({ rows, now }: PageState, { filter, sort, isReversed }: View): Row[] {
  const passes: Partial<Record<Filter, (row: Row) => boolean>> = {
    contended: ({ waiters }) => waiters > 0,
    old: (row) => isOld(row, now),
    held: ({ holder }) => holder !== null,
  };
  const found = rows.filter(passes[filter] ?? (() => true));
  found.sort((a, b) => compareBy(sort, a, b) || compareBy('age', a, b) || compareBy('key', a, b));
  return isReversed ? found.reverse() : found;
}

/** The alarms that a screen reader has not spoken: the same one is silent while only its numbers change. */
export function freshAlarms(spoken: Set<string>, alarms: readonly PageAlarm[]): PageAlarm[] {
  const nameOf = ({ kind, row, text }: PageAlarm): string => `${kind} ${row ? idOf(row) : text.replace(/\d+/g, '#')}`;
  const fresh = alarms.filter((alarm) => !spoken.has(nameOf(alarm)));
  spoken.clear();
  for (const alarm of alarms) spoken.add(nameOf(alarm));
  return fresh;
}

export function readAddress(search: string): View {
  const given = new URLSearchParams(search);
  const { in: store = '', store: storeOfKey = '', key, q: query = '', show, sort, reversed, notes } = Object.fromEntries(given);
  return {
    store: store || (key === undefined ? storeOfKey : ''),
    query,
    filter: filters.find((each) => each === show) ?? 'all',
    notes: noteFilters.find((each) => each === notes) ?? '',
    sort: columns.find((each) => each === sort) ?? 'waiters',
    isReversed: reversed !== undefined,
    open: key === undefined ? null : { store: storeOfKey, key },
  };
}

/** The address of a view; parameters that are not of the page stay. */
export function writeAddress({ open, store, query: q, filter, notes, sort, isReversed }: View, search: string): string {
  const show = filter !== 'all' && filter;
  const order = { sort: sort !== 'waiters' && sort, reversed: isReversed && '1' };
  const given = new URLSearchParams(search);
  for (const [name, value] of Object.entries({ store: open?.store, key: open?.key, in: store, q, show, notes, ...order })) {
    if (value) given.set(name, value);
    else given.delete(name);
  }
  return `?${String(given)}`.replace(/=(?=&|$)/g, '').replace(/^\?$/, '');
}
