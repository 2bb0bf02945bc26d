const COLUMNS = {
  version: (row) => row.version,
  requests: (row) => row.requests,
  errors: (row) => row.errors,
  sold: (row) => row.sold,
  left: (row) => row.left,
  oversold: (row) => row.oversold,
  'requests/s': (row) => Math.round(row.rate),
  'p50 ms': (row) => row.p50,
  'p99 ms': (row) => row.p99,
};

export function tableOf(rows, instances) {
  const names = Object.keys(COLUMNS);
  const cells = [names, ...rows.map((row) => Object.values(COLUMNS).map((cell) => String(cell(row))))];
  const widths = names.map((_, column) => Math.max(...cells.map((row) => row[column].length)));
  const lines = cells.map((row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]))).join('  '),
  );
  return lines.map((line, index) => (rows[index - 1]?.version === 'local' && instances === 1 ? `${line}  *` : line)).join('\n');
}

export function legendOf(rows, instances, { shelves, work, slowWork, naiveExpiry }) {
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
