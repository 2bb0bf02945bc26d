/** What the page knows and shows, without the DOM: it applies the server's messages, filters and sorts. */
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

/** What the address says. */
export interface View {
  readonly store: string;
  readonly query: string;
  readonly filter: Filter;
  readonly sort: Column;
  readonly isReversed: boolean;
  readonly open: RowName | null;
}

export interface Data {
  hello: Messages['hello'] | null;
  /** The server's clock minus that of the browser. */
  offset: number;
  rows: Map<string, Row>;
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

type Apply = { [Event in Exclude<keyof Messages, 'end'>]: (data: Data, message: Messages[Event], now: number) => void };

/** How each message changes the data; `now` is the time of the browser. */
export const apply: Apply = {
  hello(data, hello, now) {
    Object.assign(data, { ...emptyData(), rows: data.rows, notes: data.notes, hello, offset: hello.now - now });
  },
  rows(data, { isFirst, rows }) {
    if (isFirst) data.rows = new Map();
    for (const row of rows) data.rows.set(idOf(row), row);
  },
  delta(data, { put, drop }) {
    for (const name of drop) data.rows.delete(idOf(name));
    for (const row of put) data.rows.set(idOf(row), row);
  },
  stats(data, { seconds, processes, alerts, latency }) {
    const last = data.seconds.at(-1)?.at ?? 0;
    const all = [...data.seconds, ...seconds.filter(({ at }) => at > last)];
    const oldest = (all.at(-1)?.at ?? 0) - HISTORY;
    Object.assign(data, { seconds: all.filter(({ at }) => at > oldest), processes, alerts, latency });
  },
  notes(data, notes) {
    const known = new Set(data.notes.map((note) => JSON.stringify(note)));
    const added = notes.filter((note) => !known.has(JSON.stringify(note)));
    data.notes = [...data.notes, ...added].sort((a, b) => b.at - a.at).slice(0, MOST_NOTES);
  },
};

export function isLeader({ key, holder }: Row): boolean {
  return /leader/i.test(key) || /leader/i.test(holder?.label ?? '');
}

export function isOld(row: Row, now: number): boolean {
  return row.holder?.since != null && now - row.holder.since > OLD && !isLeader(row);
}

/** The rows that the view asks for, the first one first. */
export function visibleRows({ rows, notes }: Data, { store, query, filter, sort, isReversed }: View, now: number): Row[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const noted = new Set(notes.filter(({ event, at }) => event === filter && now - at <= RECENT).map(idOf));
  const passes: Record<Filter, (row: Row) => boolean> = {
    all: () => true,
    contended: ({ waiters }) => waiters > 0,
    old: (row) => isOld(row, now),
    leaders: isLeader,
    held: ({ holder }) => holder !== null,
    lost: (row) => noted.has(idOf(row)),
    timeout: (row) => noted.has(idOf(row)),
  };
  const isMeant = (row: Row): boolean => {
    if ((store && row.store !== store) || !passes[filter](row)) return false;
    if (words.length === 0) return true;
    const text = `${row.key} ${row.store} ${row.kind} ${row.holder?.label ?? ''} ${row.holder ? processOf(row.holder) : ''}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const compare = order[sort];
  const found = [...rows.values()].filter(isMeant).sort((a, b) => compare(a, b) || byAge(a, b) || byText(a.key, b.key));
  return isReversed ? found.reverse() : found;
}

const byText = (a: string, b: string): number => (a < b ? -1 : Number(a > b));
const byAge = (a: Row, b: Row): number => (a.holder?.since ?? Infinity) - (b.holder?.since ?? Infinity) || 0;
const order: Record<Column, (a: Row, b: Row) => number> = {
  key: (a, b) => byText(a.key, b.key),
  kind: (a, b) => byText(a.kind, b.kind),
  holder: (a, b) => byText(a.holder ? processOf(a.holder) : '~', b.holder ? processOf(b.holder) : '~'),
  label: (a, b) => byText(a.holder?.label ?? '~', b.holder?.label ?? '~'),
  age: byAge,
  waiters: (a, b) => b.waiters - a.waiters,
  wait: (a, b) => (a.waitingSince ?? Infinity) - (b.waitingSince ?? Infinity) || 0,
};

/** The same rows in the same order, with what is known of them now. New rows come last, and those that are gone are shown as free. */
export function inFrozenOrder(frozen: readonly Row[], wanted: readonly Row[], rows: ReadonlyMap<string, Row>): Row[] {
  const shown = new Set(frozen.map(idOf));
  const kept = frozen.map(
    (row) => rows.get(idOf(row)) ?? { ...row, kind: 'free' as const, holder: null, holders: 0, waiters: 0, waitingSince: null },
  );
  return [...kept, ...wanted.filter((row) => !shown.has(idOf(row)))];
}

/** The five numbers on top. */
export function numbersOf({ seconds }: Data): { held: number; waiting: number; waitP95: number | null; lost: number; timeouts: number } {
  const last = seconds.at(-1);
  const recent = seconds.filter(({ at }) => at > (last?.at ?? 0) - RECENT);
  const waits = recent.filter(({ at }) => at > (last?.at ?? 0) - MINUTE).flatMap(({ waitP95 }) => waitP95 ?? []);
  return {
    held: last?.held ?? 0,
    waiting: last?.waiting ?? 0,
    waitP95: waits.length > 0 ? Math.max(...waits) : null,
    lost: recent.reduce((sum, { lost }) => sum + lost, 0),
    timeouts: recent.reduce((sum, { timeouts }) => sum + timeouts, 0),
  };
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
  const oneOf = <T extends string>(known: readonly T[], name: string, otherwise: T): T =>
    known.find((each) => each === given.get(name)) ?? otherwise;
  const key = given.get('key');
  const store = given.get('store') ?? '';
  return {
    store: given.get('in') ?? (key === null ? store : ''),
    query: given.get('q') ?? '',
    filter: oneOf(filters, 'show', 'all'),
    sort: oneOf(columns, 'sort', 'waiters'),
    isReversed: given.has('reversed'),
    open: key === null ? null : { store, key },
  };
}

/** The address of a view; parameters that are not of the page stay. */
export function writeAddress(view: View, search: string): string {
  const given = new URLSearchParams(search);
  const said: Record<string, string | undefined> = {
    store: view.open?.store,
    key: view.open?.key,
    in: view.store,
    q: view.query,
    show: view.filter === 'all' ? '' : view.filter,
    sort: view.sort === 'waiters' ? '' : view.sort,
    reversed: view.isReversed ? '1' : '',
  };
  for (const [name, value] of Object.entries(said)) {
    if (value) given.set(name, value);
    else given.delete(name);
  }
  return String(given) && `?${String(given).replace(/=(?=&|$)/g, '')}`;
}
