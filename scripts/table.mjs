/** Lines of text whose columns are aligned: the first `texts` of them to the left, numbers to the right. */
export function alignedLines(rows, texts = 1) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => String(row[column]).length)));
  const cell = (value, column) => (column < texts ? String(value).padEnd(widths[column]) : String(value).padStart(widths[column]));
  return rows.map((row) => row.map(cell).join('  '));
}

/**
 * A table in Markdown.
 *
 * @param head titles of the columns
 * @param alignment of each column: `l` or `r`
 */
export function markdownTable(head, alignment, rows) {
  const rule = [...alignment].map((side) => (side === 'r' ? '---:' : '---'));
  return [head, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
