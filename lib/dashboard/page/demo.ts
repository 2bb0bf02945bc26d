/** An incident that is always the same: a silent holder with thirty waiters, and a deadlock. It needs no server. */
import type { Alert, KeyAnswer, Messages, Note, Party, Row, RowName, Second, WaiterAnswer } from '../dashboard.protocol.js';
import type { Server } from './server.js';
import { idOf } from './state.js';

const STORE = 'default';
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;
const PROCESSES = ['shop@a1', 'shop@a2', 'shop@a3', 'billing@f1', 'billing@f2', 'jobs@b6', 'jobs@b7', 'mail@c1'];
const SILENT = 'jobs@b7';
const QUEUE = 'import-catalogue';
const DEADLOCK = ['order:42', 'stock:9'] as const;
const LABELS = ['StockService.reduce', 'CartService.checkout', 'InvoiceService.print', 'MailService.send'];

export function demoServer(): Server {
  const start = Date.now();
  let seed = 42;
  const random = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below;
  const pick = <T>(from: readonly T[]): T => from[random(from.length)] as T;
  const nameOf = (key: string): RowName => ({ store: STORE, key });
  const party = (process: string, label: string, age: number): Party => {
    const [app = '', host = ''] = process.split('@');
    const owner = `${process}:1:${random(1e9).toString(16)}-demo`;
    return { owner, app, host, pid: 1, label, since: start - age, token: 1_000 + random(9_000), isSilent: process === SILENT };
  };
  const row = (key: string, holder: Party, waiters = 0, waited = 0, kind: Row['kind'] = 'mutex'): Row => {
    return { store: STORE, key, kind, holder, holders: 1, waiters, waitingSince: waiters > 0 ? start - waited : null };
  };
  const usual = (): Row => row(`shop-stock-${random(1e6)}`, party(pick(PROCESSES.slice(0, 6)), pick(LABELS), random(9 * SECOND)));

  const rows = new Map<string, Row>();
  const put = (...these: Row[]): void => these.forEach((each) => rows.set(each.key, each));
  put(row(QUEUE, party(SILENT, 'ImportService.run', 41 * MINUTE), 30, 3 * MINUTE));
  put(row(DEADLOCK[0], party('shop@a3', 'OrderService.pay', 37 * SECOND), 1, 36 * SECOND));
  put(row(DEADLOCK[1], party('billing@f1', 'InvoiceService.book', 36 * SECOND), 1, 37 * SECOND));
  put(row('report-leader', party('jobs@b6', 'ReportService', 3 * DAY), 2, 3 * DAY));
  put(row('nightly-export', party('jobs@b6', 'ExportService.run', 12 * MINUTE)));
  put(row('api-quota', party('mail@c1', 'MailService.send', 2 * SECOND), 3, SECOND, 'semaphore'));
  put(...Array.from({ length: 34 }, usual));

  const notes: Note[] = (['timeout', 'timeout', 'timeout', 'lost', 'timeout', 'forced'] as const).map((event, index) => {
    const reason = { lost: 'not renewed in time', forced: 'jane: deploy is stuck', timeout: 'no lock within 60 s' }[event];
    const key = event === 'timeout' ? QUEUE : `shop-stock-${index}`;
    return { ...nameOf(key), at: start - (index * 37 + 8) * SECOND, event, label: pick(LABELS), process: `${pick(PROCESSES)}:1`, reason };
  });
  const secondOf = (at: number): Second => {
    const age = start - at;
    const waiting = age > 3 * MINUTE ? random(5) : Math.min(35, 35 - Math.floor(age / 6_000));
    const [waitP50, waitP95] = [5 + waiting * random(90), 40 + waiting * (200 + random(90))];
    const lost = age === 119 * SECOND ? 1 : 0;
    return {
      at,
      held: rows.size - random(4),
      waiting,
      waitP50,
      waitP95,
      holdP95: 800 + random(400),
      lost,
      timeouts: age % (37 * SECOND) === 0 && age < 3 * MINUTE ? 1 : 0,
    };
  };
  const alertsOf = (): Alert[] => {
    const isThere = (key: string): boolean => rows.get(key)?.holder?.since !== undefined && (rows.get(key)?.waiters ?? 0) > 0;
    const alerts: Alert[] = [];
    if (DEADLOCK.every(isThere))
      alerts.push({
        kind: 'deadlock',
        row: nameOf(DEADLOCK[0]),
        text: `Deadlock: ${DEADLOCK[0]} → ${DEADLOCK[1]} → ${DEADLOCK[0]}. shop@a3 and billing@f1 wait for each other.`,
      });
    if (rows.get(QUEUE)?.holder?.isSilent)
      alerts.push({
        kind: 'silent',
        row: nameOf(QUEUE),
        text: `${QUEUE} is held by ${SILENT}, which has stopped answering. 30 callers wait for it.`,
      });
    return alerts;
  };
  const stats = (seconds: Second[]): Messages['stats'] => ({
    seconds,
    processes: PROCESSES.map((process) => {
      const holds = [...rows.values()].filter(({ holder }) => holder && `${holder.app}@${holder.host}` === process).length;
      return { name: `${process}:1`, isSilent: process === SILENT, holds, waits: process.startsWith('shop') ? 10 : 0 };
    }),
    alerts: alertsOf(),
    latency: { [STORE]: 0.4 },
  });
  const waitersOf = ({ key, waiters, waitingSince }: Row): WaiterAnswer[] =>
    Array.from({ length: waiters }, (_, index) => {
      const other = DEADLOCK[1 - DEADLOCK.indexOf(key as 'stock:9')];
      const isDeadlock = DEADLOCK.includes(key as 'stock:9') && other !== undefined;
      const { token: _token, ...waiter } =
        (isDeadlock && rows.get(other)?.holder) || party(`shop@a${(index % 3) + 1}`, LABELS[index % 4] ?? '', 0);
      const since = (waitingSince ?? start) + index * 6 * SECOND;
      return { ...waiter, since, patienceLeft: Math.max(0, since + 4 * MINUTE - Date.now()), holding: isDeadlock ? [other] : [] };
    });

  return {
    open(_store, take, isLive) {
      const first = setTimeout(() => {
        isLive(true);
        take('hello', { version: 1, now: Date.now(), stores: [STORE], me: { by: 'demo', mayRelease: true }, traceUrl: null });
        take('rows', { isFirst: true, rows: [...rows.values()] });
        take('stats', stats(Array.from({ length: 600 }, (_, index) => secondOf(start - (599 - index) * SECOND))));
        take('notes', notes);
      });
      const each = setInterval(() => {
        const old = pick([...rows.values()].slice(6));
        rows.delete(old.key);
        put(usual());
        take('delta', { put: [...rows.values()], drop: [old] });
        take('stats', stats([secondOf(Date.now())]));
      }, SECOND);
      return () => {
        clearTimeout(first);
        clearInterval(each);
      };
    },
    async key(name): Promise<KeyAnswer> {
      const found = rows.get(name.key);
      const waiters = found ? waitersOf(found) : [];
      const holders = found?.holder ? [{ ...found.holder, remaining: 7_100, phase: 'held' as const, isShared: false }] : [];
      const isDeadlock = DEADLOCK.includes(name.key as 'stock:9') && waiters.length > 0;
      return {
        ...name,
        kind: found?.kind ?? 'free',
        at: Date.now(),
        fencingToken: found?.holder?.token ?? null,
        permits: found?.kind === 'semaphore' ? 1 : null,
        count: null,
        remaining: found ? 7_100 : null,
        holders,
        holderCount: holders.length,
        waiters,
        waiterCount: waiters.length,
        notes: notes.filter((note) => idOf(note) === idOf(name)),
        chain: isDeadlock ? [...DEADLOCK, DEADLOCK[0]].map(nameOf) : [],
      };
    },
    release: ({ keys }) =>
      Promise.resolve(
        keys.map(({ key, owner }) => {
          const found = rows.get(key);
          if (found?.holder?.owner !== owner) return { key, outcome: 'changed', holder: found?.holder?.owner ?? null };
          if (found.waiters === 0) rows.delete(key);
          else put(row(key, party('shop@a1', LABELS[0] ?? '', 0), found.waiters - 1, MINUTE));
          return { key, outcome: found.holder.isSilent ? 'forced' : 'gave back', holder: owner };
        }),
      ),
    hold: async ({ key, reason }) => put(row(key, party('you@demo', reason, 0))),
  };
}
