// The result as lines: one per program, one column per Node.

export function printTable(rows, nodes) {
  const width = Math.max(...rows.map(({ title }) => title.length + 2), ...rows.map(({ app }) => app.length));
  const cells = (values) =>
    values
      .map((value) => value.padEnd(14))
      .join('')
      .trimEnd();
  console.log(`\n${''.padEnd(width)}  ${cells(nodes.map(({ major, version }) => `Node ${version?.slice(1) ?? major}`))}`);
  let app;
  for (const row of rows) {
    if (row.app !== app) console.log((app = row.app));
    console.log(`  ${row.title.padEnd(width - 2)}  ${cells(row.results)}`);
  }
}
