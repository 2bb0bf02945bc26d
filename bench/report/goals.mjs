// What the library is to reach, as ratios within one run.
import { OURS, peers } from '../contestants/lineup.mjs';

const atMost = (table, key, limit, digits = 2) => ({ table, key, text: `≤ ${limit}`, meets: (value) => value <= limit, digits });
const atLeast = (table, key, limit, digits = 2) => ({ table, key, text: `≥ ${limit}`, meets: (value) => value >= limit, digits });

const GOALS = [
  { name: 'W1 lone caller, p50 ÷ raw', ...atMost('w1-lone', 'ratio', 1.1) },
  { name: 'W1 one waiter woken, p50 ms', ...atMost('w1-woken', 'p50', 0.4) },
  { name: 'W2 256 distinct keys, pairs/s ÷ raw', ...atLeast('w2-distinct', 'ratio', 2) },
  { name: 'W3 100 callers, time ÷ ideal', ...atMost('w3-100', 'ratio', 1.05) },
  { name: 'W3 1,000 callers, time ÷ ideal', ...atMost('w3-1000', 'ratio', 1.05) },
  { name: 'W4 2 × 250, efficiency', ...atLeast('w4-2x250', 'efficiency', 0.96, 3) },
  { name: 'W4 2 × 250, wait p99 ÷ ideal', ...atMost('w4-2x250', 'waitRatio', 1.1) },
  { name: 'W4 2 × 250, requests per section', ...atMost('w4-2x250', 'requestsPerSection', 0.1, 3) },
  { name: 'W4 2 × 250, shares min/max', ...atLeast('w4-2x250', 'shares', 0.9) },
  { name: 'W4 2 × 25, empty sections/s ÷ best peer', ...atLeast('w4-2x25-empty', 'overBest', 15) },
  { name: 'W5 10,000 held, requests', ...atMost('w5-held', 'requests', 250, 0), full: true },
  { name: 'W6 10,000 callers, time ÷ ideal', ...atMost('w6-crowd', 'ratio', 1.05), full: true },
  { name: 'W6 RSS MB', ...atMost('w6-crowd', 'rss', 120, 0), full: true },
  { name: 'W6 not done', table: 'w6-crowd', key: 'missing', text: '0', meets: (value) => value === 0, digits: 0, full: true },
];

/** Each goal on loopback with what ours reached (the median of the rounds) and what the peers did, from the worst to the best. */
export function judge(tables, quick) {
  return GOALS.flatMap((goal) => {
    const table = tables.find(({ id, network }) => id === goal.table && network === 'loopback');
    const ours = table?.rows.find(({ contestant }) => contestant === OURS)?.median[goal.key];
    if (ours === undefined) return [];
    const others = peers(table.rows)
      .map(({ median }) => median[goal.key])
      .filter(Number.isFinite);
    const range = others.length > 0 ? [Math.min(...others), Math.max(...others)] : undefined;
    return [{ ...goal, ours, range, met: goal.meets(ours), isSmaller: quick && goal.full === true }];
  });
}
