// Writes how long the longest test files take, for longest-first.cjs: node test/support/durations.mjs results-of-jest.json
import { readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Seconds: of shorter ones the order makes no difference. */
const SHORTEST = 3;
const root = fileURLToPath(new URL('../..', import.meta.url));
const { testResults } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const seconds = testResults
  .map(({ name, startTime, endTime }) => [relative(root, name), Math.round((endTime - startTime) / 1000)])
  .filter(([, length]) => length >= SHORTEST)
  .sort(([, a], [, b]) => b - a);
writeFileSync(new URL('durations.json', import.meta.url), `${JSON.stringify(Object.fromEntries(seconds), undefined, 2)}\n`);
console.log(`${seconds.length} files of ${SHORTEST} s or more`);
