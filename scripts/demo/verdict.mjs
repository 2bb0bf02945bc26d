import { alignedLines } from '../table.mjs';

export const VERSIONS = ['none', 'local', 'naive', 'lock'];

/** The outcome of a load, summed over the SKUs. */
export function rowOf({ version, requests, shelves, left, sold, answers, seconds, p50, p99 }) {
  const each = [...shelves].map(([sku, stock]) => {
    const of = (counts) => counts.get(sku) ?? 0;
    return { stock, left: of(left), sold: of(sold), answers: of(answers) };
  });
  const sum = (of) => each.reduce((total, shelf) => total + of(shelf), 0);
  return {
    version,
    requests,
    errors: requests - sum((shelf) => shelf.answers),
    sold: sum((shelf) => shelf.sold),
    left: sum((shelf) => shelf.left),
    oversold: sum((shelf) => Math.max(0, shelf.sold - shelf.stock)),
    isExact: each.every((shelf) => shelf.sold === Math.min(shelf.stock, shelf.answers) && shelf.sold + shelf.left === shelf.stock),
    'requests/s': Math.round(requests / seconds),
    'p50 ms': p50,
    'p99 ms': p99,
  };
}

/** Why the demo does not show what it is to show; nothing if it does. */
export function judge(rows, instances) {
  const row = (version) => rows.find((one) => one.version === version);
  const problems = [];
  if (!row('lock').isExact) problems.push('lock: not exact. What was sold and what is left is not what there was.');
  if (row('lock').errors > 0) problems.push(`lock: ${row('lock').errors} requests got no answer.`);
  if (row('none').oversold === 0) problems.push('none: did not oversell. Give more --concurrency or longer --work.');
  for (const version of ['local', 'naive']) {
    if (version === 'local' && instances === 1) continue; // one mutex is right for one process
    if (row(version).oversold === 0) console.error(`${version}: did not oversell this time. Give more --concurrency or longer --work.`);
  }
  return problems;
}

/** One line of what was seen, and what to read next. */
export function endingOf(rows, shelves) {
  const stock = [...shelves.values()].reduce((sum, units) => sum + units, 0);
  const [none, lock] = ['none', 'lock'].map((version) => rows.find((row) => row.version === version));
  return `Seen: of ${stock} units ${none.sold} were sold without a lock, and ${lock.sold} with @DistributedLock. Next: README.md, and sample-app/README.md, this shop to copy.`;
}

export function tableOf(rows, instances) {
  const names = Object.keys(rows[0]).filter((name) => name !== 'isExact');
  const lines = alignedLines([names, ...rows.map((row) => names.map((name) => row[name]))]);
  return lines.map((line, index) => (rows[index - 1]?.version === 'local' && instances === 1 ? `${line}  *` : line)).join('\n');
}

export function legendOf({ shelves, instances, work, slowWork, naiveExpiry }) {
  const stock = [...shelves.values()].reduce((sum, units) => sum + units, 0);
  const lines = [
    `${stock} units of ${shelves.size} things were there to be sold, by ${instances} instance${instances > 1 ? 's' : ''}; a sale takes ${work} ms, one in twenty ${slowWork} ms.`,
    'none   no lock',
    'local  a mutex in the process: each instance has its own',
    `naive  SETNX with an expiry of ${naiveExpiry} ms: a slow sale outlasts it, and then deletes a lock that is no longer its own`,
    'lock   @DistributedLock',
  ];
  if (instances === 1) lines.push('*      right with one instance only, and there is only one here: two would oversell');
  return lines.join('\n');
}
