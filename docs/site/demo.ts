/** The dashboard of the docs site. An incident that is always the same: a silent holder with thirty waiters, and a deadlock. It needs no server. */
import {
  VERSION,
  type PageAlarm,
  type KeyAnswer,
  type Note,
  type Party,
  type Row,
  type PageState,
  type WaiterAnswer,
} from '../../lib/dashboard/dashboard.protocol.js';
import { startPage } from '../../lib/dashboard/page/page.js';
import type { Server } from '../../lib/dashboard/page/server.js';

const store = 'default';
const MINUTE = 60_000;
const PROCESSES = ['shop@a1', 'shop@a2', 'shop@a3', 'billing@f1', 'billing@f2', 'jobs@b6', 'jobs@b7', 'mail@c1'] as const;
const SILENT = 'jobs@b7';
const LABELS = ['StockService.reduce', 'CartService.checkout', 'InvoiceService.print', 'MailService.send'] as const;
const OTHER: Record<string, string> = { 'order:42': 'stock:9', 'stock:9': 'order:42' };
const ROWS: readonly [key: string, process: string, label: string, age: number, waiters?: number][] = [
  ['import-catalogue', SILENT, 'ImportService.run', 41 * MINUTE, 30],
  ['order:42', 'shop@a3', 'OrderService.pay', 37_000, 1],
  ['stock:9', 'billing@f1', 'InvoiceService.book', 36_000, 1],
  ['report-leader', 'jobs@b6', 'ReportService', 4_320 * MINUTE, 2],
  ['nightly-export', 'jobs@b6', 'ExportService.run', 12 * MINUTE],
];

function demoServer(): Server {
  const start = Date.now();
  const rows = new Map<string, Row>();
  let seed = 42;
  const random = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below;
  const pick = <T>(from: readonly T[]): T => from[random(from.length)] as T;
  const party = (process: string, label: string, age: number): Party => {
    const [app = '', host = ''] = process.split('@');
    const [since, endsAt] = [Date.now() - age, Date.now() + 6_000 + random(4_000)];
    const owner = `${process}:1:${random(1e9).toString(16)}`;
    const isSilent = process === SILENT;
    return { owner, app, host, pid: 1, label, since, token: random(9_999), phase: 'held', endsAt, isSilent, saidAt: start - 12_000 };
  };
  const put = (key: string, process: string, label: string, age: number, waiters = 0): void => {
    const waitingSince = waiters > 0 ? Date.now() - Math.min(age, 3 * MINUTE) : null;
    const kind = key.endsWith('-leader') ? 'leader election' : 'mutex';
    rows.set(key, { store, key, kind, permits: null, holder: party(process, label, age), holders: 1, waiters, waitingSince });
  };
  const putUsual = (): void => put(`shop-stock-${random(1e6)}`, pick(PROCESSES.slice(0, 6)), pick(LABELS), random(9_000));
  for (const row of ROWS) put(...row);
  while (rows.size < 40) putUsual();

  let alarms: PageAlarm[] = [
    {
      kind: 'deadlock',
      row: { store, key: 'order:42' },
      text: 'Deadlock: OrderService.pay of shop@a3:1 holds order:42 and waits for stock:9; InvoiceService.book of billing@f1:1 holds stock:9 and waits for order:42. The first wait ends in 23 s. Take one of the keys away to end it.',
    },
    {
      kind: 'wait',
      row: { store, key: 'import-catalogue' },
      text: `import-catalogue: 30 wait, the first for 3 min; ImportService.run of ${SILENT}:1 holds it for 41 min and does not answer`,
    },
    { kind: 'lost', text: '1 lease was lost in the last five minutes: see the events.' },
  ];
  const notes: Note[] = (['timeout', 'timeout', 'lost', 'timeout', 'forced'] as const).map((event, index) => {
    const reason = { lost: 'not renewed in time', forced: 'deploy is stuck', timeout: null }[event];
    const at = start - index * 37_000 - 8_000;
    const key = event === 'timeout' ? 'import-catalogue' : `shop-stock-${index}`;
    const count = event === 'timeout' ? 30 : 1;
    const by = event === 'forced' ? 'jane' : null;
    return {
      store,
      key,
      at,
      firstAt: at - 50_000,
      count,
      event,
      by,
      label: pick(LABELS),
      process: `${pick(PROCESSES)}:1`,
      reason,
      lasted: null,
    };
  });
  const waitersOf = ({ key, waiters, waitingSince }: Row): WaiterAnswer[] => {
    const other = OTHER[key];
    const count = Math.ceil(waiters / 3);
    return Array.from({ length: Math.min(3, waiters) }, (_, index) => {
      const waiter = (other && rows.get(other)?.holder) || party(`shop@a${index + 1}`, pick(LABELS), 0);
      const since = (waitingSince ?? start) + index * 6_000;
      return { ...waiter, count, since, patienceLeft: Math.max(0, since + 4 * MINUTE - Date.now()), holding: other ? [other] : [] };
    });
  };

  return {
    async state(_store, query): Promise<PageState> {
      const now = Date.now();
      const old = pick([...rows.values()].slice(ROWS.length));
      rows.delete(old.key);
      putUsual();
      const found = [...rows.values()].filter((row) => JSON.stringify(row).toLowerCase().includes(query.toLowerCase()));
      return {
        version: VERSION,
        now,
        me: { by: 'demo', mayRelease: true },
        stores: [{ name: store, at: now, isAway: false, latency: 0.4, keys: rows.size, isWhole: true }],
        numbers: { held: rows.size, waiting: 34, longestWait: 3 * MINUTE, lost: 1, timeouts: 90, failed: 0 },
        alarms,
        processes: { known: PROCESSES.length, silent: [`${SILENT}:1`] },
        rows: found.sort((a, b) => b.waiters - a.waiters),
        found: found.length,
        notes,
        advice: [],
      };
    },
    async key({ key }): Promise<KeyAnswer> {
      const row = rows.get(key);
      const waiters = row ? waitersOf(row) : [];
      const holders = row?.holder ? [{ ...row.holder, isShared: false }] : [];
      const chain = OTHER[key] && waiters.length > 0 ? [key, OTHER[key], key].map((each) => ({ store, key: each })) : [];
      return {
        ...{ store, key, kind: row ? 'mutex' : 'free', at: Date.now(), permits: null, count: null, endsAt: null, chain },
        fencingToken: row?.holder?.token ?? null,
        ...{ holders, holderCount: holders.length, waiters, waiterCount: row?.waiters ?? 0 },
        notes: notes.filter((note) => note.key === key),
      };
    },
    async release({ key, owner }) {
      const { holder = null, waiters = 0 } = rows.get(key) ?? {};
      if (holder?.owner !== owner) return { outcome: 'changed', holder: holder?.owner ?? null };
      alarms = alarms.filter(({ text }) => !text.includes(key));
      if (waiters > 0) put(key, 'shop@a1', LABELS[0], 0, waiters - 1);
      else rows.delete(key);
      return { outcome: holder.isSilent ? 'forced' : 'gave back', holder: owner };
    },
    async hold({ key, reason }) {
      if (rows.has(key)) return { isHeld: false };
      put(key, 'you@demo', reason, 0);
      return { isHeld: true };
    },
  };
}

startPage(demoServer());
