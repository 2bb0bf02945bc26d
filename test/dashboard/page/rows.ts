import { VERSION, type KeyAnswer, type Note, type PageState, type Party, type Row } from '../../../lib/dashboard/dashboard.protocol.js';

/** The time of the server in these tests, unless they need the real one. */
export const NOW = 1_800_000_000_000;

export function party(given: Partial<Party> = {}): Party {
  return {
    ...{ owner: 'shop@a1:1:uuid', app: 'shop', host: 'a1', pid: 1, label: 'StockService.reduce' },
    ...{ since: NOW - 5_000, token: 7, phase: 'held', endsAt: null, isSilent: false, saidAt: null },
    ...given,
  };
}

export function row(key: string, given: Partial<Row> = {}): Row {
  return { store: 'default', key, kind: 'mutex', permits: null, holder: party(), holders: 1, waiters: 0, waitingSince: null, ...given };
}

export function state(given: Partial<PageState> = {}): PageState {
  const now = given.now ?? NOW;
  const rows = given.rows ?? [];
  return {
    ...{ version: VERSION, now, me: { by: 'jane', mayRelease: true }, rows, found: rows.length, notes: [], advice: [], alarms: [] },
    stores: [{ name: 'default', at: now, isAway: false, latency: 0.4, keys: rows.length, isWhole: true }],
    numbers: { held: rows.length, waiting: 0, longestWait: null, lost: 0, timeouts: 0, failed: 0 },
    processes: { known: 0, silent: [] },
    ...given,
  };
}

export function note(key: string, given: Partial<Note> = {}): Note {
  const at = given.at ?? NOW - 1_000;
  const told = { by: null, label: null, process: 'shop@a1:1', reason: null, lasted: null };
  return { store: 'default', key, at, firstAt: at, count: 1, event: 'timeout', ...told, ...given };
}

export function keyAnswer({ store, key, kind, holder, waiters }: Row, given: Partial<KeyAnswer> = {}): KeyAnswer {
  const holders = holder ? [{ ...holder, isShared: false }] : [];
  return {
    ...{ store, key, kind: kind === 'leader election' ? 'mutex' : kind, at: NOW, fencingToken: holder?.token ?? null },
    ...{ permits: null, count: null, endsAt: null, holders, holderCount: holders.length, waiters: [], waiterCount: waiters },
    ...{ notes: [], chain: [] },
    ...given,
  };
}
