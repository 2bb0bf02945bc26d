import { VERSION, type KeyAnswer, type Messages, type Note, type Party, type Row } from '../../../lib/dashboard/dashboard.protocol.js';

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
    saidAt: null,
    until: null,
    ...given,
  };
}

export function row(key: string, given: Partial<Row> = {}): Row {
  return { store: 'default', key, kind: 'mutex', holder: party(), holders: 1, waiters: 0, waitingSince: null, waitingIn: [], ...given };
}

export function hello(given: Partial<Messages['hello']> = {}): Messages['hello'] {
  return {
    version: VERSION,
    now: NOW,
    stores: ['default'],
    me: { by: 'jane', mayRelease: true },
    ...given,
  };
}

export function stats(given: Partial<Messages['stats']> = {}): Messages['stats'] {
  const numbers = { held: 1, waiting: 0, waitP95: null, lost: 0, timeouts: 0 };
  const listings = { default: { state: 'whole', keys: 1, hasEvents: true } } as const;
  return { numbers, costly: [], processes: [], alerts: [], latency: {}, listings, ...given };
}

export function note(key: string, given: Partial<Note> = {}): Note {
  const at = given.at ?? NOW - 1_000;
  const told = { by: null, label: null, process: 'shop@a1:1', reason: null, held: null };
  return { store: 'default', key, at, firstAt: at, count: 1, event: 'timeout', ...told, ...given };
}

export function keyAnswer({ store, key, kind, holder, waiters }: Row, given: Partial<KeyAnswer> = {}): KeyAnswer {
  const holders = holder ? [{ ...holder, remaining: 9_000, phase: 'held' as const, isShared: false }] : [];
  return {
    store,
    key,
    kind: kind === 'leader election' ? 'mutex' : kind,
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
