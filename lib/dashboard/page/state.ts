/** The data of the page without the DOM: applies the server's messages, filters and sorts. */
import type { Alert, Messages, Note, Party, Row, RowName } from '../dashboard.protocol.js';
import { timeOf, visible } from './words.js';

const MINUTE = 60_000;
/** A holder is old after this time. Leaders hold for days by design. */
const OLD = 5 * MINUTE;
const MOST_NOTES = 500;
const MOST_PREFIXES = 50;

export const filters = ['all', 'contended', 'old', 'leaders', 'held'] as const;
const noteFilters = ['', 'lost', 'timeout', 'forced'] as const;
export const columns = ['key', 'kind', 'holder', 'label', 'age', 'waiters', 'wait'] as const;
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

/** A row of the table, with what `idOf` gives for it: it is asked for in every drawing. */
export type Line = Row & { readonly id: string };

export interface Data {
  hello: Messages['hello'] | null;
  /** The server's clock minus that of the browser. */
  offset: number;
  rows: Map<string, Line>;
  stats: Messages['stats'];
  notes: Note[];
}

export function emptyData(): Data {
  const numbers = { held: null, waiting: null, waitP95: null, lost: 0, timeouts: 0 };
  const stats = { numbers, costly: [], processes: [], alerts: [], latency: {}, listings: {} };
  return { hello: null, offset: 0, rows: new Map(), stats, notes: [] };
}

/** Neither a store nor a key has control characters. */
export function idOf({ store, key }: RowName): string {
  return `${store}\n${key}`;
}

export function processOf({ app, host, pid }: { app: string; host: string; pid: number }): string {
  return `${app}@${host}:${pid}`;
}

type Apply = { [Event in Exclude<keyof Messages, 'end'>]: (data: Data, message: Messages[Event], now: number) => void };

/** How each message changes the data. `now` is the time of the browser. */
export const apply: Apply = {
  hello(data, hello, now) {
    Object.assign(data, { hello, offset: hello.now - now });
  },
  delta(data, { isFirst, put, drop }) {
    if (isFirst) data.rows = new Map();
    for (const name of drop) data.rows.delete(idOf(name));
    for (const row of put) {
      const id = idOf(row);
      data.rows.set(id, { ...row, id });
    }
  },
  stats(data, stats) {
    data.stats = stats;
  },
  notes(data, notes) {
    const all = new Map([...data.notes, ...notes].map((note) => [noteId(note), note]));
    data.notes = [...all.values()].sort((a, b) => b.at - a.at).slice(0, MOST_NOTES);
  },
};

/** Equal events of a minute are one note, which grows. */
function noteId({ event, store, key, label, process, by, firstAt }: Note): string {
  return JSON.stringify([event, store, key, label, event === 'timeout' || process, by, Math.floor(firstAt / MINUTE)]);
}

export function isLeader({ kind }: Row): boolean {
  return kind === 'leader election';
}

/** `held by hand: incident 812, until 18:24`; `undefined`: it is not. Its owner has the operator and the reason as its app, without spaces. */
export function byHand({ app, label, until }: Party): string | undefined {
  const [, reason] = /^[^:]+:(.+)$/.exec(app) ?? [];
  if (reason === undefined || label !== null || until === null) return undefined;
  return `held by hand: ${visible(reason).replaceAll('-', ' ').trim()}, until ${timeOf(until).slice(0, 5)}`;
}

export function isOld(row: Row, now: number): boolean {
  return row.holder?.since != null && now - row.holder.since > OLD && !isLeader(row);
}

const sortValues: Record<Column, (row: Row) => string | number> = {
  key: ({ key }) => key,
  kind: ({ kind }) => kind,
  holder: ({ holder }) => (holder ? processOf(holder) : '~'),
  label: ({ holder }) => holder?.label ?? '~',
  age: ({ holder }) => holder?.since ?? Infinity,
  waiters: ({ waiters }) => -waiters,
  wait: ({ waitingSince }) => waitingSince ?? Infinity,
};

function compareBy(column: Column, a: Row, b: Row): number {
  const first = sortValues[column](a);
  const second = sortValues[column](b);
  return first < second ? -1 : Number(first > second);
}

/** The rows that the view asks for, the first one first. */
export function visibleRows({ rows }: Data, view: View, now: number, among: Iterable<Line> = rows.values()): Line[] {
  const { store, query, filter, sort, isReversed } = view;
  const words = query.toLowerCase().split(' ');
  const passes: Partial<Record<Filter, (row: Line) => boolean>> = {
    contended: ({ waiters }) => waiters > 0,
    old: (row) => isOld(row, now),
    leaders: isLeader,
    held: ({ holder }) => holder !== null,
  };
  const isMeant = (row: Line): boolean => {
    if ((store && row.store !== store) || passes[filter]?.(row) === false) return false;
    if (!query) return true;
    const text = [row.key, row.store, row.kind, row.holder?.label, row.holder && processOf(row.holder), ...row.waitingIn]
      .join(' ')
      .toLowerCase();
    return words.every((word) => (word[0] === '^' ? row.key.toLowerCase().startsWith(word.slice(1)) : text.includes(word)));
  };
  const found = [...among].filter(isMeant);
  found.sort((a, b) => compareBy(sort, a, b) || compareBy('age', a, b) || compareBy('key', a, b));
  return isReversed ? found.reverse() : found;
}

/** How many keys and waiters each next part of the keys has, the most first. `^` before a word of the search makes it a prefix. */
export function prefixesIn(rows: readonly Row[], query: string): [prefix: string, keys: number, waiters: number][] {
  const start = query[0] === '^' ? query.length - 1 : 0;
  const all = new Map<string, [prefix: string, keys: number, waiters: number]>();
  for (const { key, waiters } of rows) {
    const end = key.slice(start).search(/[:/]/);
    if (end < 0) continue;
    const prefix = key.slice(0, start + end + 1);
    const [, keys, sum] = all.get(prefix) ?? [prefix, 0, 0];
    all.set(prefix, [prefix, keys + 1, sum + waiters]);
  }
  return [...all.values()].sort((a, b) => b[1] - a[1]).slice(0, MOST_PREFIXES);
}

/** The same rows in the same order, with what is known of them now. New rows come last, and those that are gone are shown as free. */
export function inFrozenOrder(frozen: readonly Line[], data: Data, view: View, now: number): Line[] {
  const shown = new Set<string>();
  const kept = frozen.map((row): Line => {
    shown.add(row.id);
    return data.rows.get(row.id) ?? { ...row, kind: 'free', holder: null, holders: 0, waiters: 0, waitingSince: null, waitingIn: [] };
  });
  return [...kept, ...visibleRows(data, view, now, [...data.rows.values()].filter(({ id }) => !shown.has(id)))]; // prettier-ignore
}

/** The alerts that a screen reader has not spoken: the same one is silent while only its numbers change. */
export function freshAlerts(spoken: Set<string>, alerts: readonly Alert[]): Alert[] {
  const nameOf = ({ kind, row, text }: Alert): string => `${kind} ${row ? idOf(row) : text.replace(/\d+/g, '#')}`;
  const fresh = alerts.filter((alert) => !spoken.has(nameOf(alert)));
  spoken.clear();
  for (const alert of alerts) spoken.add(nameOf(alert));
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
  const said = {
    store: open?.store,
    key: open?.key,
    in: store,
    q,
    show,
    notes,
    sort: sort !== 'waiters' && sort,
    reversed: isReversed && '1',
  };
  const given = new URLSearchParams(search);
  for (const [name, value] of Object.entries(said)) {
    if (value) given.set(name, value);
    else given.delete(name);
  }
  return `?${String(given)}`.replace(/=(?=&|$)/g, '').replace(/^\?$/, '');
}
