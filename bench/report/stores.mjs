// The stores beside each other: what was measured, and the goals.
import { markdownTable } from '../../scripts/table.mjs';
import { median } from '../measure/statistics.mjs';

/** Sections of 1 ms on one key. */
export const LOADS = {
  '1 × 100': { processes: 1, callers: 100, turns: 20 },
  '2 × 25': { processes: 2, callers: 25, turns: 40 },
  '4 × 25': { processes: 4, callers: 25, turns: 20 },
};

const GOALS = [
  { store: 'postgres', load: '1 × 100', key: 'totals', what: 'time ÷ Redis', limit: 1.1 },
  { store: 'postgres', load: '2 × 25', key: 'totals', what: 'time ÷ Redis', limit: 1.25 },
  { store: 'postgres', load: '2 × 25', key: 'p99s', what: 'wait p99 ÷ Redis', limit: 1.6 },
  { store: 'mysql', load: '2 × 25', key: 'totals', what: 'time ÷ Redis', limit: 1.7 },
];
const OF_TABLE = [
  { name: 'postgres, a refused tryAcquire, bytes of WAL', limit: 0, of: ({ walOfRefused }) => walOfRefused },
  {
    name: 'postgres, 10,000 keys, table after 100,000 pairs beside an old transaction ÷ its first size',
    limit: 20,
    of: ({ growthBesideOld }) => growthBesideOld?.times,
  },
];

export function judgeStores({ loads, table }) {
  const rows = GOALS.flatMap(({ store, load, key, what, limit }) => {
    const ratios = loads[load]?.[store]?.[key];
    return ratios ? [rowOf(`${store}, ${load}, ${what}`, limit, median(ratios), rangeOf(ratios))] : [];
  });
  const ofTable = OF_TABLE.flatMap(({ name, limit, of }) => (of(table) === undefined ? [] : [rowOf(name, limit, of(table), '')]));
  return markdownTable(['', 'goal', 'reached', ''], 'lrrl', [...rows, ...ofTable]);
}

export function tableOfStores({ loads, table }) {
  const rows = Object.entries(loads).flatMap(([load, stores]) =>
    Object.entries(stores).map(([store, { total, p99, totals, p99s }]) => [
      load,
      store,
      `${(total / 1000).toFixed(2)} s`,
      `${median(totals).toFixed(2)}${rangeOf(totals)}`,
      `${Math.round(p99)} ms`,
      `${median(p99s).toFixed(2)}${rangeOf(p99s)}`,
    ]),
  );
  const head = ['processes × callers', 'store', 'time', '÷ Redis', 'wait p99', '÷ Redis'];
  const { growth, growthOfOneKey } = table;
  const sizes = growth
    ? `\n\nThe table of Postgres without an old transaction: ${times(growth)} after 100,000 pairs on 10,000 keys, ${times(growthOfOneKey)} after 10,000 pairs on one key.`
    : '';
  return markdownTable(head, 'llrrrr', rows) + sizes;
}

const times = ({ first, last, times: by }) => `${kilobytes(first)} → ${kilobytes(last)} (× ${by.toFixed(1)})`;
const kilobytes = (bytes) => `${Math.round(bytes / 1024).toLocaleString('en')} kB`;
const rangeOf = (ratios) => ` (${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)})`;
const rowOf = (name, limit, value, range) => [name, `≤ ${limit}`, `${value.toFixed(2)}${range}`, value <= limit ? 'met' : '**missed**'];
