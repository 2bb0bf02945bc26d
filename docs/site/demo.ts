/** The dashboard of the docs site. An incident that is always the same: a silent holder with thirty waiters, and a deadlock. It needs no server. */
import {
  VERSION,
  type Alert,
  type KeyAnswer,
  type Messages,
  type Note,
  type Party,
  type Row,
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
    const owner = `${process}:1:${random(1e9).toString(16)}`;
    return {
      owner,
      app,
      host,
      pid: 1,
      label,
      since: Date.now() - age,
      token: random(9_999),
      isSilent: process === SILENT,
      saidAt: start - 12_000,
      until: null,
    };
  };
  const put = (key: string, process: string, label: string, age: number, waiters = 0): void => {
    const waitingSince = waiters > 0 ? Date.now() - Math.min(age, 3 * MINUTE) : null;
    const kind = key.endsWith('-leader') ? 'leader election' : 'mutex';
    const waitingIn = waiters > 0 ? PROCESSES.slice(0, 3).map((name) => `${name}:1`) : [];
    rows.set(key, { store, key, kind, holder: party(process, label, age), holders: 1, waiters, waitingSince, waitingIn });
  };
  const putUsual = (): void => put(`shop-stock-${random(1e6)}`, pick(PROCESSES.slice(0, 6)), pick(LABELS), random(9_000));
  for (const row of ROWS) put(...row);
  while (rows.size < 40) putUsual();

  let alerts: Alert[] = [
    {
      kind: 'deadlock',
      row: { store, key: 'order:42' },
      text: 'Deadlock: OrderService.pay of shop@a3 holds order:42 and waits for stock:9; InvoiceService.book of billing@f1 holds stock:9 and waits for order:42. The first wait ends in 23 s. Take one of the keys away to end it.',
    },
    {
      kind: 'silent',
      row: { store, key: 'import-catalogue' },
      text: `import-catalogue is held by ${SILENT}, which has stopped answering. 30 callers wait for it.`,
    },
  ];
  const notes: Note[] = (['timeout', 'timeout', 'lost', 'timeout', 'forced'] as const).map((event, index) => {
    const reason = { lost: 'not renewed in time', forced: 'deploy is stuck', timeout: null }[event];
    const at = start - index * 37_000 - 8_000;
    const key = event === 'timeout' ? 'import-catalogue' : `shop-stock-${index}`;
    return {
      store,
      key,
      at,
      firstAt: at - 50_000,
      count: event === 'timeout' ? 30 : 1,
      event,
      by: event === 'forced' ? 'jane' : null,
      label: pick(LABELS),
      process: `${pick(PROCESSES)}:1`,
      reason,
      held: null,
    };
  });
  const stats = (): Messages['stats'] => {
    const holdsOf = (process: string): number => [...rows.values()].filter(({ holder }) => holder?.owner.startsWith(process)).length;
    const processes = PROCESSES.map((process) => ({
      name: `${process}:1`,
      isSilent: process === SILENT,
      holds: holdsOf(process),
      waits: process.startsWith('shop') ? 10 : 0,
    }));
    const numbers = { held: rows.size - random(4), waiting: 34, waitP95: 7_000 + random(900), lost: 1, timeouts: 90 };
    const costly = [{ label: 'CartService.checkout', waited: 940_000 }, { label: 'StockService.reduce', waited: 81_000 }]; // prettier-ignore
    return {
      numbers,
      costly,
      processes,
      alerts,
      latency: { [store]: 0.4 },
      listings: { [store]: { state: 'whole', keys: rows.size, hasEvents: true } },
    };
  };
  const waiterOf = ({ key, waitingSince }: Row, index: number): WaiterAnswer => {
    const other = OTHER[key];
    const waiter = (other && rows.get(other)?.holder) || party(`shop@a${(index % 3) + 1}`, pick(LABELS), 0);
    const since = (waitingSince ?? start) + index * 6_000;
    return { ...waiter, since, patienceLeft: Math.max(0, since + 4 * MINUTE - Date.now()), holding: other ? [other] : [] };
  };

  return {
    open(take, isLive) {
      const first = setTimeout(() => {
        isLive(true);
        const me = { by: 'demo', mayRelease: true };
        take('hello', { version: VERSION, now: Date.now(), stores: [store], me });
        take('delta', { isFirst: true, put: [...rows.values()], drop: [] });
        take('stats', stats());
        take('notes', notes);
      });
      const each = setInterval(() => {
        const old = pick([...rows.values()].slice(ROWS.length));
        rows.delete(old.key);
        putUsual();
        take('delta', { put: [...rows.values()], drop: [old] });
        take('stats', stats());
      }, 1_000);
      return () => {
        clearTimeout(first);
        clearInterval(each);
      };
    },
    async key({ key }): Promise<KeyAnswer> {
      const row = rows.get(key);
      const waiters = Array.from({ length: row?.waiters ?? 0 }, (_, index) => waiterOf(row as Row, index));
      const holders = row?.holder ? [{ ...row.holder, remaining: 7_100, phase: 'held' as const, isShared: false }] : [];
      const chain = OTHER[key] && waiters.length > 0 ? [key, OTHER[key], key].map((each) => ({ store, key: each })) : [];
      return {
        store,
        key,
        kind: row ? 'mutex' : 'free',
        at: Date.now(),
        fencingToken: row?.holder?.token ?? null,
        permits: null,
        count: null,
        remaining: null,
        holders,
        holderCount: holders.length,
        waiters,
        waiterCount: waiters.length,
        notes: notes.filter((note) => note.key === key),
        chain,
      };
    },
    find: async () => ({ found: 0, isWhole: true }),
    release: async ({ keys }) =>
      keys.map(({ key, owner }) => {
        const { holder = null, waiters = 0 } = rows.get(key) ?? {};
        if (holder?.owner !== owner) return { key, outcome: 'changed', holder: holder?.owner ?? null };
        alerts = alerts.filter(({ text }) => !text.includes(key));
        if (waiters > 0) put(key, 'shop@a1', LABELS[0], 0, waiters - 1);
        else rows.delete(key);
        return { key, outcome: holder.isSilent ? 'forced' : 'gave back', holder: owner };
      }),
    hold: async ({ key, reason }) => {
      if (rows.has(key)) return { isHeld: false };
      put(key, 'you@demo', reason, 0);
      return { isHeld: true };
    },
  };
}

startPage(demoServer());
