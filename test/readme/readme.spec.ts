// The documents do not drift from the code: their snippets are regions of tested files, and their links lead somewhere.
import { existsSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { matrixOf, numbersOf } from '../chaos/report/table.js';
import type { Summary } from '../chaos/run/summary.js';
import { guaranteesTable } from './guarantees-table.js';
import { integrationsList } from '../integrations/list.js';
import { blocksOf, documents, filesIn, pages, read, regionsOf, wrongLinks } from '../support/markdown.js';

const sources = ['test/readme', 'test/integrations', 'test/testing'].flatMap(filesIn).filter((file) => file.endsWith('.ts'));
const regions = sources.flatMap(regionsOf);
const blocks = documents().flatMap(blocksOf);
/** Not the tutorial's: they are the files of an app, which test/tutorial makes of them and runs. */
const snippets = blocks.filter(({ language, where }) => language === 'ts' && !where.startsWith('docs/tutorial.md:'));

describe('snippets', () => {
  it('are regions of tested files, each of one', () => {
    const texts = regions.map(({ text }) => text);
    const others = snippets.filter(({ text }) => texts.filter((region) => region === text).length !== 1);
    expect(others.map(({ where }) => where)).toEqual([]);
  });

  it('are all there is of code: no block escapes the check by its language', () => {
    const unchecked = blocks.filter(({ language }) => !['ts', 'sh', 'text', 'mermaid'].includes(language));
    expect(unchecked.map(({ where, language }) => `${where} ${language}`)).toEqual([]);
  });

  it('are all shown: no region is left over, and no two have one name', () => {
    const shown = new Set(blocks.map(({ text }) => text));
    expect(regions.filter(({ text }) => !shown.has(text)).map(({ name }) => name)).toEqual([]);
    expect(new Set(regions.map(({ name }) => name)).size).toBe(regions.length);
  });

  it('are the same in both languages', () => {
    const textsOf = (file: string) => blocksOf(file).map(({ text }) => text);
    expect(textsOf('README.zh-CN.md')).toEqual(textsOf('README.md'));
  });

  it('are all in files that a spec runs', () => {
    const specs = sources.filter((source) => source.endsWith('.spec.ts'));
    const imports = specs.map(read).join('\n');
    const files = [...new Set(regions.map(({ file }) => file))].filter((file) => !specs.includes(file));
    expect(files.filter((file) => !imports.includes(`'./${basename(file, '.ts')}.js'`))).toEqual([]);
  });
});

describe.each(['README.md', 'README.zh-CN.md'])('%s', (file) => {
  it('can be read in two minutes: at most 120 lines and 750 words', () => {
    expect(read(file).trim().split('\n').length).toBeLessThanOrEqual(120);
    expect(read(file).match(/\S*[\p{L}\p{N}]\S*/gu)!.length).toBeLessThanOrEqual(750);
  });

  it('names both commands with which to try it in a clone', () => {
    for (const command of ['npm ci && npm run demo', 'npm ci && npm test']) expect(read(file)).toContain(command);
  });
});

describe('commands', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const [, commands = ''] = /COMMANDS = \{\n(.*?)\n\};/s.exec(read('scripts/nightly.mjs'))!;
  const nightly = [...commands.matchAll(/^ {2}(\w+): \[/gm)].map(([, name = '']) => name);
  /** What a page tells the reader to run that is not there. */
  const wrong = (page: string): string[] => {
    const named = [...page.matchAll(/\bnpm run (?:-s )?([a-z][\w:-]*)/g)].map(([, name = '']) => name).filter((name) => !(name in scripts));
    const names = [...page.matchAll(/\bnpm run nightly -- (\w+)/g)].map(([, name = '']) => name).filter((name) => !nightly.includes(name));
    const files = [...page.matchAll(/\b(?:tsx|node|npx jest) ((?:test|scripts|bench|lib)\/[\w./-]+\.\w+)/g)].map(([, file = '']) => file);
    return [...named, ...names, ...files.filter((file) => !existsSync(file))];
  };

  it.each([...pages().keys()].filter((file) => !/^(examples|sample-app|scripts\/matrix|docs\/(tutorial|cli))/.test(file)))(
    'of %s can be run',
    (file) => {
      expect(wrong(read(file))).toEqual([]);
    },
  );

  it('run programs of packages that npm knows as this one: outside of a project `npx ndl` would ask for another', () => {
    expect([...pages().keys()].filter((file) => /\bnpx ndl\b/.test(read(file)))).toEqual([]);
  });

  it('that are not there are found', () => {
    expect(
      wrong('`npm run gone`, `npm run lint`, `npm run nightly -- never`, `npx tsx test/chaos/gone.ts`, `node scripts/demo.mjs`'),
    ).toEqual(['gone', 'never', 'test/chaos/gone.ts']);
  });
});

describe('links', () => {
  it('lead to what their text names, on every page', () => {
    expect([...pages().keys()]).toEqual(
      expect.arrayContaining(['SECURITY.md', 'test/chaos/README.md', 'docs/mysql.md', 'lib/core/README.md']),
    );
    expect(wrongLinks(pages())).toEqual([]);
  });

  it.each([
    ['to a page that is not there', '[Redis](gone.md)'],
    ['to a heading that is not there', '[rights](redis.md#rights)'],
    ['to another page than the one that its text names', '[Redis](operate.md)'],
    ['to another page than the one of this title', '[Waiting and timeouts](operate.md#find-keys)'],
    ['to another file than the one that its text names', '[mutex.entry](../test/contract/mutex.results.contract.ts)'],
  ])('%s are found', (_, link) => {
    expect(wrongLinks(pages().set('docs/new.md', `# New\nSee [Postgres](postgres.md), and ${link}.`))).toEqual([`docs/new.md: ${link}`]);
  });
});

it('the table of the guarantees is that of the tests; `npm run docs` writes it', () => {
  expect(read('test/README.md')).toContain(guaranteesTable());
});

it('what was tried is what the results of chaos and simulation say; `npm run docs` writes the tables', () => {
  const results = JSON.parse(read('test/chaos/results.json')) as Summary[];
  expect(read('docs/guarantees.md')).toContain(matrixOf(results));
  expect(read('test/chaos/README.md')).toContain(numbersOf(results));
  expect(matrixOf([{ ...results[0]!, violations: { overlap: { mutex: 1 } } }])).toContain('**broken**: one holder (G2, G3)');
  const parts = JSON.parse(read('test/simulation/results.json')) as Record<string, number>[];
  const [writes, runs, faults] = ['writes', 'runs', 'faults'].map((name) => parts.reduce((sum, part) => sum + part[name]!, 0));
  expect(read('docs/guarantees.md')).toContain(`${writes} guarded writes in ${runs} runs with ${faults} faults`);
});

it('docs name the versions of servers that docs/versions.json has; `npm run docs` writes them', async () => {
  const { pagesWithVersions } = (await import(resolve('scripts/version-claims.mjs'))) as {
    pagesWithVersions(root: string): { path: string; text: string; right: string }[];
  };
  const pages = pagesWithVersions(resolve('.'));
  for (const { text, right } of pages) expect(text).toBe(right);
  const shown = pages.map(({ right }) => right).join();
  const claims = Object.values(JSON.parse(read('docs/versions.json')) as Record<string, object>).flatMap((each) => Object.keys(each));
  expect(claims.filter((version) => !shown.includes(version))).toEqual([]);
});

it('a version that passed is claimed with the date, one that failed no more, and one that is gone with its old date', async () => {
  const { claimsAfter } = (await import(resolve('scripts/version-claims.mjs'))) as {
    claimsAfter(before: object, runs: object[], date: string): object;
  };
  const [old, now] = ['2026-01-31', '2026-02-01'].map((passed) => ({ from: 'sid', passed }));
  const before = { redis: { '8.0.6': old, '8.0.9': old }, etcd: { '3.4.23': old } };
  const run = (engine: string, version: string, passed: boolean) => ({ engine, version, from: 'sid', passed });
  const runs = [run('etcd', '3.4.23', false), run('redis', '8.0.10', true), run('redis', '8.0.6', true), run('mysql', '9.7.4', false)];
  const after = { redis: { '8.0.6': now, '8.0.9': old, '8.0.10': now } };
  expect(JSON.stringify(claimsAfter(before, runs, '2026-02-01'))).toBe(JSON.stringify(after));
});

describe('the list of docs/integrations.md', () => {
  it('has what the specs prove; `npm run docs` writes it', () => {
    expect(read('docs/integrations.md')).toContain(integrationsList());
  });

  it('misses no line: each is written with literals at the start of a line', () => {
    for (const spec of filesIn('test/integrations').filter((file) => file.endsWith('.spec.ts'))) {
      const calls = read(spec).match(/\b(aboveAndBelow|way)\(/g) ?? [];
      const rows = read(spec).match(/^(aboveAndBelow|way)\(\s*'[^']+',\s*'[^']+',/gm) ?? [];
      expect(`${spec}: ${rows.length} rows`).toBe(`${spec}: ${calls.length} rows`);
    }
  });
});
