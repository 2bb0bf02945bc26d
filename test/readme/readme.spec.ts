// The documents do not drift from the code: their snippets are regions of tested files, and their links lead somewhere.
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { integrationsTable } from '../integrations/table.js';
import { anchorsOf, blocksOf, documents, filesIn, linksOf, read, regionsOf, ROOT } from '../support/markdown.js';

const sources = ['test/readme', 'test/integrations', 'test/testing'].flatMap(filesIn).filter((file) => file.endsWith('.ts'));
const regions = sources.flatMap(regionsOf);
const blocks = documents().flatMap(blocksOf);
/** Not the tutorial's: they are the files of an app, which test/tutorial makes of them and runs. */
const snippets = blocks.filter(({ language, where }) => language === 'ts' && !where.startsWith('docs/tutorial.md:'));

describe('snippets', () => {
  it.each(snippets)('$where is a region of a tested file', ({ text }) => {
    const names = regions.filter((region) => region.text === text).map(({ name }) => name);
    if (names.length !== 1) throw new Error(`This block is no region of a tested file (or of several):\n${text}`);
  });

  it('are all there is of code: no block escapes the check by its language', () => {
    const unchecked = blocks.filter(({ language }) => !['ts', 'sh', 'text'].includes(language));
    expect(unchecked.map(({ where, language }) => `${where} ${language}`)).toEqual([]);
  });

  it('are all shown: no region is left over, and no two have one name', () => {
    const shown = new Set(blocks.map(({ text }) => text));
    expect(regions.filter(({ text }) => !shown.has(text)).map(({ name }) => name)).toEqual([]);
    expect(new Set(regions.map(({ name }) => name)).size).toBe(regions.length);
  });

  it.each([...new Set(regions.map(({ file }) => file))])('%s is run by a spec', (file) => {
    const specs = sources.filter((source) => source.endsWith('.spec.ts'));
    const module = `'./${basename(file, '.ts')}.js'`;
    expect(specs.some((spec) => spec === file || read(spec).includes(module))).toBe(true);
  });
});

describe('links', () => {
  it.each(documents().flatMap(linksOf))('$where leads somewhere', ({ file, anchor }) => {
    expect(existsSync(join(ROOT, file)) ? 'there' : `${file} is missing`).toBe('there');
    if (anchor !== undefined) expect(anchorsOf(file)).toContain(anchor);
  });
});

describe('the table of docs/integrations.md', () => {
  it('has the rows that the specs prove; `npm run docs` writes it', () => {
    expect(read('docs/integrations.md')).toContain(integrationsTable());
  });

  it('misses no row: each is written with literals at the start of a line', () => {
    for (const spec of filesIn('test/integrations').filter((file) => file.endsWith('.spec.ts'))) {
      const calls = read(spec).match(/\b(place|way)\(/g) ?? [];
      const rows = read(spec).match(/^(place|way)\(\s*'[^']+',\s*'[^']+',/gm) ?? [];
      expect(`${spec}: ${rows.length} rows`).toBe(`${spec}: ${calls.length} rows`);
    }
  });
});
