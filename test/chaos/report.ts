// Writes what the runs of results.json came to: whether the promises held into docs/guarantees.md, the numbers into test/chaos/README.md.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { matrixOf, numbersOf } from './report/table.js';
import type { Summary } from './run/summary.js';

const BEGIN = '<!-- chaos: written by npm run docs -->';
const END = '<!-- /chaos -->';

export function writeReport(): void {
  const summaries = JSON.parse(readFileSync(new URL('results.json', import.meta.url), 'utf8')) as Summary[];
  write('../../docs/guarantees.md', matrixOf(summaries));
  write('README.md', numbersOf(summaries));
}

function write(name: string, table: string): void {
  const page = fileURLToPath(new URL(name, import.meta.url));
  const [before, rest] = readFileSync(page, 'utf8').split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new Error(`${page} has no "${BEGIN}" with "${END}" behind it`);
  writeFileSync(page, `${before}${BEGIN}\n${table}\n${END}${after}`);
}
