// Several Redis servers over one of them: what the benchmarks `cluster` and `quorum` measured, and the goals.
import { markdownTable } from '../../scripts/table.mjs';
import { median } from '../measure/statistics.mjs';

/** Goals, by the file in results/ and what was measured there. */
const GOALS = [
  { file: 'cluster', key: 'handOver', name: 'Cluster of three, hand-over between two processes, p50 ÷ one server', limit: 1.5 },
  { file: 'cluster', key: 'wait', name: 'Cluster of three, 2 × 25 callers of one key, wait p99 ÷ one server', limit: 1.5 },
  { file: 'cluster', key: 'renewals', name: 'Cluster of three, 10,000 renewals, CPU of client and servers ÷ one server', limit: 2 },
  { file: 'quorum', key: 'pair', name: 'quorum of three, a lone acquire and release, p50 ÷ one server', limit: 1.5 },
  { file: 'quorum', key: 'crowd', name: 'quorum of three, 4 × 25 callers of one key, time ÷ one server', limit: 2 },
  { file: 'quorum', key: 'splitVotes', name: 'quorum of three, split votes of these callers', limit: 0, digits: 0 },
];

/** Ratios of each round; `null`: it was given up. */
export const ratiosOf = (values, base) => (values.includes(Infinity) ? null : values.map((value, round) => value / base[round]));

/** @param runs by the file. */
export function judgeServers(runs) {
  const rows = rowsOf(runs).map(({ name, limit, ratios, ...row }) => [
    name,
    `≤ ${limit}`,
    row.reached,
    row.redlock,
    verdict(ratios, limit),
  ]);
  return markdownTable(['', 'goal', 'reached', 'redlock 5', ''], 'lrrrl', rows);
}

export function tableOfServers(runs) {
  const rows = rowsOf(runs).map(({ name, reached, redlock }) => [name, reached, redlock]);
  return markdownTable(['', 'ours', 'redlock 5'], 'lrr', rows);
}

function rowsOf(runs) {
  return GOALS.flatMap((goal) => {
    const { file, key, digits = 2 } = goal;
    const ratios = runs[file]?.ratios[key];
    if (ratios === undefined) return [];
    return [{ ...goal, ratios, reached: spread(ratios, digits), redlock: spread(runs[file].redlock?.[key], digits) }];
  });
}

function spread(ratios, digits) {
  if (!ratios) return ratios === null ? 'gave up after 30 s' : '–';
  const [middle, least, most] = [median(ratios), Math.min(...ratios), Math.max(...ratios)].map((value) => value.toFixed(digits));
  return ratios.length === 1 ? middle : `${middle} (${least}–${most})`;
}

const verdict = (ratios, limit) => (ratios && median(ratios) <= limit ? 'met' : '**missed**');
