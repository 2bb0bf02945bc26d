// Finds words and long sentences that make a reader stop, and names better words: in pages (of their code blocks only comments), in the messages of lib,
// in comments of code, and in the titles of tests.
//
//   node scripts/prose.mjs [lib/core …]      only the files whose path begins so
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/** Regular expressions of words, and what to write instead. */
const BETTER = {
  'told|hears?|heard': 'notified, receives the notification',
  '(its|their|his|a|whose) turns?|in turn|take turns': 'hand-off',
  '(its|their|a|no|own) places?( in the (queue|line))?': 'queue entry',
  '(a|its|own) looks?|looks? (by (it|them)sel(f|ves)|again)': 'poll',
  'patien(ce|t)': 'wait timeout',
  'sta(nds?|nding|ood) for (election|leader\\w*)': 'campaigns',
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

/** A docstring says first what it documents. */
const DOCSTRING_OPENING = /^(Of|What|Who|Those|By|As|Whose)\b/;
/** Paths, and how to read such a file. */
const READERS = [
  [/^(docs\/(?!\.)[\w/.-]+|ARCHITECTURE|CHANGELOG|CONTRIBUTING|SECURITY|(.*\/)?(README|WIRE-FORMAT))\.md$/, linesOfPage],
  [/^(lib|scripts(?!\/prose)|sample-app)\/.*\.(ts|mjs)$/, proseOfSource],
  [/^lib\/.*\.lua$/, commentsOfLua],
  [/^test\/.*\.ts$/, titlesOfTests],
];

const root = fileURLToPath(new URL('../', import.meta.url));
const words = Object.entries(BETTER).map(([pattern, better]) => [new RegExp(`(?<![\\w.#/-])(${pattern})(?![\\w-])`, 'gi'), better]);
const chosen = process.argv.slice(2);
let found = 0;

for (const file of execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).trim().split('\n')) {
  if (chosen.length > 0 && !chosen.some((prefix) => file.startsWith(prefix))) continue;
  const read = READERS.find(([pattern]) => pattern.test(file))?.[1];
  if (!read) continue;
  for (const { text, line, isDocstring } of read(readFileSync(root + file, 'utf8')))
    for (const problem of problemsIn(text, isDocstring)) {
      console.error(`${file}:${line}: ${problem}`);
      found++;
    }
}
if (found > 0) console.error(`${found} places to reword`);
process.exitCode = found > 0 ? 1 : 0;

function problemsIn(text, isDocstring = false) {
  const prose = text
    .replace(/`[^`]*`/g, '``')
    .replace(/\{@\w+[^}]*\}/g, '``')
    .replace(/\]\([^)]*\)/g, ']');
  const instead = words.flatMap(([word, better]) => [...prose.matchAll(word)].map(([match]) => `"${match}": rather ${better}`));
  const opening = isDocstring && DOCSTRING_OPENING.test(prose) ? [`"${prose.slice(0, 40)}…": begin with a noun or a verb`] : [];
  return [...instead, ...opening, ...prose.split(/(?<!\\)\||(?<=[.!?][)*"]*)\s+(?=[^a-z])/).flatMap(problemOf)];
}

/** @param sentence or the cell of a table. */
function problemOf(sentence) {
  const { length } = sentence.match(/``|[\p{L}\p{N}][^\s`]*/gu) ?? [];
  const begins = `"${sentence.trim().slice(0, 40)}…"`;
  if (length > LONGEST) return `${begins} has ${length} words: split it`;
  return /^[\s>*-]*(Of|Who|Whom|Whoever|Whose)\s/.test(sentence) ? `${begins}: begin with the subject` : [];
}

function* linesOfPage(page) {
  let inCode = false;
  for (const [index, line] of page.split('\n').entries()) {
    if (/^\s*```/.test(line)) inCode = !inCode;
    else yield { text: inCode ? (/(?:^|\s)(?:\/\/|\/?\*\*?)\s(.*)$/.exec(line)?.[1] ?? '') : line, line: index + 1 };
  }
}

/** Comments, and texts of two words or more. */
function* proseOfSource(source) {
  const file = ts.createSourceFile('file.ts', source, ts.ScriptTarget.Latest, true);
  const lineOf = (position) => file.getLineAndCharacterOfPosition(position).line + 1;
  const seen = new Set();
  const nodes = [file];
  for (let node = nodes.pop(); node; node = nodes.pop()) {
    for (const { pos, end } of ts.getLeadingCommentRanges(source, node.pos) ?? []) {
      if (seen.has(pos)) continue;
      seen.add(pos);
      yield* partsOfComment(source.slice(pos, end), lineOf(pos));
    }
    if ((ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) && /\w \w/.test(node.text))
      yield { text: node.text.split('\n', 1)[0], line: lineOf(node.getStart()) };
    nodes.push(...node.getChildren());
  }
}

/** Its description and each of its tags. */
function* partsOfComment(comment, line) {
  const isDocstring = comment.startsWith('/**');
  const lines = comment.split('\n').map((each) => each.replace(/^\s*(\/\*\*?|\/\/+|\*(?!\/))\s?|\s*\*\/$/g, ''));
  for (const [index, part] of lines
    .join('\n')
    .split(/\n(?=@\w)/)
    .entries())
    yield {
      text: part
        .replace(/^@(param \S+|throws (\{\w+\})?|\w+)/, '')
        .replace(/\s+/g, ' ')
        .trim(),
      line,
      isDocstring: isDocstring && index === 0,
    };
}

function* commentsOfLua(script) {
  for (const [index, line] of script.split('\n').entries()) yield { text: /--\s(.*)$/.exec(line)?.[1] ?? '', line: index + 1 };
}

function* titlesOfTests(source) {
  for (const match of source.matchAll(/\b(?:it|test|describe|aboveAndBelow)(?:\.each\([^)]*\))?\(\s*(['"`])((?:(?!\1).)+)\1/g))
    yield { text: match[2].replace(/\$\{[^}]*\}/g, '``'), line: source.slice(0, match.index).split('\n').length };
}
