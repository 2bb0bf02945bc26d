/** The data of the page without the DOM: applies the server's messages, filters and sorts. */
import type { Alert, Messages, Note, ProcessState, Row, RowName, Second } from '../dashboard.protocol.js';

const MINUTE = 60_000;
/** A holder is old after this time. Leaders hold for days by design. */
const OLD = 5 * MINUTE;
const HISTORY = 10 * MINUTE;
const RECENT = 5 * MINUTE;
const MOST_NOTES = 500;

export const filters = ['all', 'contended', 'old', 'leaders', 'held', 'lost', 'timeout'] as const;
export const columns = ['key', 'kind', 'holder', 'label', 'age', 'waiters', 'wait'] as const;
export type Filter = (typeof filters)[number];
export type Column = (typeof columns)[number];

/** The choices of the operator, which the address has. */
export interface View {
  readonly store: string;
  readonly query: string;
  readonly filter: Filter;
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
  seconds: Second[];
  processes: readonly ProcessState[];
  alerts: readonly Alert[];
  latency: Messages['stats']['latency'];
  notes: Note[];
}

export function emptyData(): Data {
  return { hello: null, offset: 0, rows: new Map(), seconds: [], processes: [], alerts: [], latency: {}, notes: [] };
}

/** Neither a store nor a key has control characters. */
export function idOf({ store, key }: RowName): string {
  return `${store}\n${key}`;
}

export function processOf({ app, host, pid }: { app: string; host: string; pid: number }): string {
  return `${app}@${host}:${pid}`;
}

function putAll({ rows }: Data, these: readonly Row[]): void {
  for (const row of these) {
    const id = idOf(row);
    rows.set(id, { ...row, id });
  }
}

type Apply = { [Event in Exclude<keyof Messages, 'end'>]: (data: Data, message: Messages[Event], now: number) => void };

/** How each message changes the data. `now` is the time of the browser. */
export const apply: Apply = {
  hello(data, hello, now) {
    Object.assign(data, { hello, offset: hello.now - now, seconds: [] });
  },
  rows(data, { isFirst, rows }) {
    if (isFirst) data.rows = new Map();
    putAll(data, rows);
  },
  delta(data, { put, drop }) {
    for (const name of drop) data.rows.delete(idOf(name));
    putAll(data, put);
  },
  stats(data, { seconds, processes, alerts, latency }) {
    const last = data.seconds.at(-1)?.at ?? 0;
    const all = [...data.seconds, ...seconds.filter(({ at }) => at > last)];
    const oldest = (all.at(-1)?.at ?? 0) - HISTORY;
    Object.assign(data, { seconds: all.filter(({ at }) => at > oldest), processes, alerts, latency });
  },
  notes(data, notes) {
    const all = new Map([...data.notes, ...notes].map((note) => [JSON.stringify(note), note]));
    data.notes = [...all.values()].sort((a, b) => b.at - a.at).slice(0, MOST_NOTES);
  },
};

export function isLeader({ key, holder }: Row): boolean {
  return /leader/i.test(key) || /leader/i.test(holder?.label ?? '');
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
export function visibleRows({ rows, notes }: Data, view: View, now: number, among: Iterable<Line> = rows.values()): Line[] {
  const { store, query, filter, sort, isReversed } = view;
  const words = query.toLowerCase().split(' ');
  const noted = new Set(notes.filter(({ event, at }) => event === filter && now - at <= RECENT).map(idOf));
  const passes: Partial<Record<Filter, (row: Line) => boolean>> = {
    contended: ({ waiters }) => waiters > 0,
    old: (row) => isOld(row, now),
    leaders: isLeader,
    held: ({ holder }) => holder !== null,
    lost: ({ id }) => noted.has(id),
    timeout: ({ id }) => noted.has(id),
  };
  const isMeant = (row: Line): boolean => {
    if ((store && row.store !== store) || passes[filter]?.(row) === false) return false;
    if (!query) return true;
    const text = [row.key, row.store, row.kind, row.holder?.label, row.holder && processOf(row.holder)].join(' ').toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const found = [...among].filter(isMeant);
  found.sort((a, b) => compareBy(sort, a, b) || compareBy('age', a, b) || compareBy('key', a, b));
  return isReversed ? found.reverse() : found;
}

/** The same rows in the same order, with what is known of them now. New rows come last, and those that are gone are shown as free. */
export function inFrozenOrder(frozen: readonly Line[], data: Data, view: View, now: number): Line[] {
  const shown = new Set<string>();
  const kept = frozen.map((row): Line => {
    shown.add(row.id);
    return data.rows.get(row.id) ?? { ...row, kind: 'free', holder: null, holders: 0, waiters: 0, waitingSince: null };
  });
  return [...kept, ...visibleRows(data, view, now, [...data.rows.values()].filter(({ id }) => !shown.has(id)))]; // prettier-ignore
}

/** The five numbers on top. */
export function numbersOf({ seconds }: Data): Pick<Second, 'held' | 'waiting' | 'waitP95' | 'lost' | 'timeouts'> {
  const { at: end = 0, held = 0, waiting = 0 } = seconds.at(-1) ?? {};
  const recent = seconds.filter(({ at }) => at > end - RECENT);
  const waits = recent.flatMap(({ at, waitP95 }) => (at > end - MINUTE ? (waitP95 ?? []) : []));
  const sum = (field: 'lost' | 'timeouts'): number => recent.reduce((total, second) => total + second[field], 0);
  return { held, waiting, waitP95: waits.length > 0 ? Math.max(...waits) : null, lost: sum('lost'), timeouts: sum('timeouts') };
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
  const { in: store = '', store: storeOfKey = '', key, q: query = '', show, sort, reversed } = Object.fromEntries(given);
  return {
    store: store || (key === undefined ? storeOfKey : ''),
    query,
    filter: filters.find((each) => each === show) ?? 'all',
    sort: columns.find((each) => each === sort) ?? 'waiters',
    isReversed: reversed !== undefined,
    open: key === undefined ? null : { store: storeOfKey, key },
  };
}

/** The address of a view; parameters that are not of the page stay. */
export function writeAddress({ open, store, query: q, filter, sort, isReversed }: View, search: string): string {
  const show = filter !== 'all' && filter;
  const said = { store: open?.store, key: open?.key, in: store, q, show, sort: sort !== 'waiters' && sort, reversed: isReversed && '1' };
  const given = new URLSearchParams(search);
  for (const [name, value] of Object.entries(said)) {
    if (value) given.set(name, value);
    else given.delete(name);
  }
  return `?${String(given)}`.replace(/=(?=&|$)/g, '').replace(/^\?$/, '');
}
