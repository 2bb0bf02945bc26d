// What the library has to reach, where possible as a ratio within the run.
import { isPeer, OURS, OURS_IGNORING } from '../contestants/lineup.mjs';

const atMost = (table, key, limit, digits = 2) => ({ table, key, text: `≤ ${limit}`, meets: (value) => value <= limit, digits });
const atLeast = (table, key, limit, digits = 2) => ({ table, key, text: `≥ ${limit}`, meets: (value) => value >= limit, digits });

const GOALS = [
  { name: 'W1 lone caller, p50 ÷ raw', ...atMost('w1-lone', 'ratio', 1.3), text: '≤ 1.3, better 1.2' },
  { name: 'W1 p50 ÷ redlock', ...atMost('w1-lone', 'overRedlock', 1) },
  { name: 'W1 p50 ÷ murlock', ...atMost('w1-lone', 'overMurlock', 1) },
  { name: 'W1 server, commands of a pair, µs', ...atMost('w1-lone', 'commandTimePerPair', 7, 1) },
  { name: 'W1 client, user CPU of a pair over raw, µs', ...atMost('w1-lone', 'userOverRaw', 5, 1) },
  {
    name: "W1 with 1 ms of delay, using with onLost: 'ignore', p50 ÷ raw",
    ...atMost('w1-lone', 'ratio', 0.6),
    contestant: OURS_IGNORING,
    network: '1 ms',
  },
  { name: 'W1 one waiter woken, p50 ms', ...atMost('w1-woken', 'p50', 0.4) },
  { name: 'W2 256 distinct keys, pairs/s ÷ raw', ...atLeast('w2-distinct', 'ratio', 1.7) },
  { name: 'W3 100 callers, time ÷ ideal', ...atMost('w3-100', 'ratio', 1.05, 3) },
  { name: 'W3 1,000 callers, time ÷ ideal', ...atMost('w3-1000', 'ratio', 1.05, 3) },
  { name: 'W4 2 × 250, efficiency', ...atLeast('w4-2x250', 'efficiency', 0.93, 3) },
  { name: 'W4 2 × 250, wait p99 ÷ ideal', ...atMost('w4-2x250', 'waitRatio', 1.1) },
  { name: 'W4 2 × 250, requests per section', ...atMost('w4-2x250', 'requestsPerSection', 0.1, 3) },
  { name: 'W4 2 × 250, shares min/max', ...atLeast('w4-2x250', 'shares', 0.9) },
  { name: 'W4 2 × 25, empty sections/s ÷ best peer', ...atLeast('w4-2x25-empty', 'overBest', 10) },
  { name: 'W5 10,000 held, CPU of client and server ÷ raw', ...atMost('w5-held', 'cpuRatio', 0.5) },
  { name: 'W5 heap for each, bytes', ...atMost('w5-held', 'heapPerLock', 1200, 0) },
  { name: 'W6 10,000 callers, time ÷ ideal', ...atMost('w6-crowd', 'ratio', 1.05, 3), full: true },
  { name: 'W6 RSS MB', ...atMost('w6-crowd', 'rss', 120, 0), full: true },
  { name: 'W6 not done', table: 'w6-crowd', key: 'missing', text: '0', meets: (value) => value === 0, digits: 0, full: true },
  { name: 'W7 50/50, sections/s ÷ a mutex for all', ...atLeast('w7-50-50', 'ratio', 1) },
  { name: 'W8 10 permits × 256 callers, sections/s ÷ redis-semaphore', ...atLeast('w8-1', 'ratio', 1.5) },
  { name: 'W8 wait p99 ÷ ideal', ...atMost('w8-1', 'waitRatio', 5) },
];

/** Each goal with what ours reached (median and range of the rounds) and the peers' medians, from the least to the most. */
export function judge(tables, quick) {
  return GOALS.flatMap((goal) => {
    const { key, contestant: name = OURS, network = 'loopback' } = goal;
    const table = tables.find((one) => one.id === goal.table && one.network === network);
    const row = table?.rows.find(({ contestant }) => contestant === name);
    if (row?.median[key] === undefined) return [];
    const others = table.rows
      .filter(({ contestant }) => isPeer(contestant))
      .map(({ median }) => median[key])
      .filter(Number.isFinite);
    const range = others.length > 0 ? [Math.min(...others), Math.max(...others)] : undefined;
    return [{ ...goal, row, range, met: goal.meets(row.median[key]), isSmaller: quick && goal.full === true }];
  });
}
