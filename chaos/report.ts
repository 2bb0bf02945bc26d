// Writes what the runs of results.json came to into docs/guarantees.md. `npm run chaos:report [-- results.json…]`
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { tablesOf } from './report/table.js';
import type { Summary } from './run/summary.js';

const BEGIN = '<!-- chaos: written by npm run chaos:report -->';
const END = '<!-- /chaos -->';

const page = fileURLToPath(new URL('../docs/guarantees.md', import.meta.url));
const files = process.argv.slice(2);
if (files.length === 0) files.push(fileURLToPath(new URL('results.json', import.meta.url)));
const summaries = files.flatMap((file) => JSON.parse(readFileSync(file, 'utf8')) as Summary[]);
const text = readFileSync(page, 'utf8');
const [before, rest] = text.split(BEGIN);
const after = rest?.split(END)[1];
if (before === undefined || after === undefined) throw new Error(`${page} has no "${BEGIN}" with "${END}" behind it`);
writeFileSync(page, `${before}${BEGIN}\n${tablesOf(summaries)}\n${END}${after}`);
