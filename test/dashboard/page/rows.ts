import type { KeyAnswer, Messages, Party, Row } from '../../../lib/dashboard/dashboard.protocol.js';

/** The time of the server in these tests, unless they need the real one. */
export const NOW = 1_800_000_000_000;

export function party(given: Partial<Party> = {}): Party {
  return {
    owner: 'shop@a1:1:uuid',
    app: 'shop',
    host: 'a1',
    pid: 1,
    label: 'StockService.reduce',
    since: NOW - 5_000,
    token: 7,
    isSilent: false,
    ...given,
  };
}

export function row(key: string, given: Partial<Row> = {}): Row {
  return { store: 'default', key, kind: 'mutex', holder: party(), holders: 1, waiters: 0, waitingSince: null, ...given };
}

export function hello(given: Partial<Messages['hello']> = {}): Messages['hello'] {
  return { version: 1, now: NOW, stores: ['default'], me: { by: 'jane', mayRelease: true }, traceUrl: null, ...given };
}

export function stats(given: Partial<Messages['stats']> = {}): Messages['stats'] {
  return { seconds: [], processes: [], alerts: [], latency: {}, ...given };
}

export function keyAnswer({ store, key, kind, holder, waiters }: Row, given: Partial<KeyAnswer> = {}): KeyAnswer {
  const holders = holder ? [{ ...holder, remaining: 9_000, phase: 'held' as const, isShared: false }] : [];
  return {
    store,
    key,
    kind,
    at: NOW,
    fencingToken: holder?.token ?? null,
    permits: null,
    count: null,
    remaining: null,
    holders,
    holderCount: holders.length,
    waiters: [],
    waiterCount: waiters,
    notes: [],
    chain: [],
    ...given,
  };
}
