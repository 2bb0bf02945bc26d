// Finds words and long sentences in docs and the pages beside it that make a reader stop, and names better words. In code blocks only comments are read.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Regular expressions of words, and what to write instead. */
const BETTER = {
  'told|hears?|heard': 'notified, receives the notification',
  '(its|their|his|a|whose) turns?|in turn|take turns': 'hand-off',
  '(its|their|a|no|own) places?( in the (queue|line))?': 'queue entry',
  '(a|its|own) looks?|looks? (by (it|them)sel(f|ves)|again)': 'poll',
  'patien(ce|t)': 'wait timeout',
  'sta(nds?|nding|ood) for': 'campaigns',
  'leads? no more': 'steps down',
  'for ?ever': 'indefinitely',
  'in vain': 'without effect',
  '(is|be|are) at it': 'is running',
  'whom|whoever|whosoever': '–',
  'strangers?': 'another caller',
  '(words|say|says|said) at boot|at boot,? (it|the app) says': 'startup warnings',
  'who waits?|those who|what came|those that wait': 'a waiter, callers that…, the result',
  'g[io]ves? back|given back|giving back': 'releases',
  'anew|thereof|thereby|hereby|herewith|hence|thus|nay|shall': 'again, –',
};

/** Words of a sentence; code counts as one. */
const LONGEST = 40;

const root = new URL('../', import.meta.url);
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'chaos/README.md',
  ...readdirSync(new URL('docs/', root), { recursive: true }).map((name) => `docs/${name}`),
];
const words = Object.entries(BETTER).map(([pattern, better]) => [new RegExp(`(?<![\\w.#/-])(${pattern})(?![\\w-])`, 'gi'), better]);
let found = 0;

for (const page of pages.filter((name) => /^(?!docs\/\.)[\w/.-]+\.md$/.test(name))) {
  let inCode = false;
  const lines = readFileSync(fileURLToPath(new URL(page, root)), 'utf8').split('\n');
  for (const [index, line] of lines.entries()) {
    if (/^\s*```/.test(line)) inCode = !inCode;
    else for (const problem of problemsIn(inCode ? commentOf(line) : line)) report(`${page}:${index + 1}: ${problem}`);
  }
}
process.exitCode = found > 0 ? 1 : 0;

function problemsIn(line) {
  const prose = line.replace(/`[^`]*`/g, '``').replace(/\]\([^)]*\)/g, ']');
  const instead = words.flatMap(([word, better]) => [...prose.matchAll(word)].map(([match]) => `"${match}": rather ${better}`));
  return [...instead, ...prose.split(/(?<!\\)\||(?<=[.!?][)*"]*)\s+(?=[^a-z])/).flatMap(problemOf)];
}

/** @param sentence or the cell of a table. */
function problemOf(sentence) {
  const { length } = sentence.match(/``|[\p{L}\p{N}][^\s`]*/gu) ?? [];
  const begins = `"${sentence.trim().slice(0, 40)}…"`;
  if (length > LONGEST) return `${begins} has ${length} words: split it`;
  return /^[\s>*-]*(Of|Who|Whom|Whoever|Whose)\s/.test(sentence) ? `${begins}: begin with the subject` : [];
}

function commentOf(line) {
  return /(?:^|\s)(?:\/\/|\/?\*\*?)\s(.*)$/.exec(line)?.[1] ?? '';
}

function report(problem) {
  console.error(problem);
  found++;
}
