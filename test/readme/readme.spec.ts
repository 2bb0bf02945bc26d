// The documents do not drift from the code: their snippets are tested, their links lead somewhere, their tables name what there is.
import { DistributedLock } from 'nestjs-distributed-lock';
import * as core from 'nestjs-distributed-lock/core';
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { completeOptions, USING_CHECKS } from '../../lib/core/model/options.js';
import { anchorsOf, blocksOf, documents, filesIn, linksOf, read, regionsOf, ROOT, sectionsOf, tableWith } from '../support/markdown.js';

const sources = [...filesIn('test/readme'), ...filesIn('test/integrations')].filter((file) => file.endsWith('.ts'));
const regions = sources.flatMap(regionsOf);
const blocks = documents().flatMap(blocksOf);
/** Not the tutorial's: they are the files of an app, which test/tutorial makes of them and runs. */
const snippets = blocks.filter(({ language, where }) => language === 'ts' && !where.startsWith('docs/tutorial.md:'));
const codeIn = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);

describe('snippets', () => {
  it.each(snippets)('$where is a region of a tested file', ({ text }) => {
    const names = regions.filter((region) => region.text === text).map(({ name }) => name);
    if (names.length !== 1)
      throw new Error(`This block is no region of a file in test/readme or test/integrations (or of several):\n${text}`);
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

describe('the tables of the README', () => {
  it('name every option of the decorator, with its default', () => {
    const rows = tableWith('README.md', 'option');
    const names = rows.flatMap(([option = '']) => codeIn(option));
    const own = ['prefix', 'value', 'paramLock', 'key', 'returns', 'store'];
    expect(names.sort()).toEqual([...own, ...Object.keys(USING_CHECKS).filter((name) => name !== 'signal')].sort());
    for (const name of names) expect(() => decorate({ [name]: undefined })).not.toThrow();

    const defaults = new Map<string, unknown>(Object.entries(completeOptions({})));
    for (const [option = '', fallback = ''] of rows) {
      const value = defaults.get(codeIn(option)[0] ?? '');
      if (value === undefined || value === 0) continue;
      expect(`${option}: ${fallback.replace(/[`']/g, '')}`).toBe(`${option}: ${value as string | number | boolean}`);
    }
  });

  it('name every error, with its code', () => {
    const listed = tableWith('README.md', '`code`').flatMap(([, errors = '', codes = '']) => {
      const named = codeIn(codes);
      return codeIn(errors).map((name, index) => `${name} ${named[index]}`);
    });
    const thrown = Object.entries(core).filter(([name]) => name.endsWith('Error') && name !== 'LockError');
    expect(listed.sort()).toEqual(thrown.map(([name, type]) => `${name} ${(type as { code?: string }).code}`).sort());
  });
});

describe('docs/guarantees.md', () => {
  const guarantees = [...sectionsOf('docs/guarantees.md')].filter(([heading]) => /^G\d+ /.test(heading));

  it('has all ten', () => {
    expect(guarantees.map(([heading]) => heading.split(' ')[0])).toEqual(Array.from({ length: 10 }, (_, index) => `G${index + 1}`));
  });

  it.each(guarantees)('%s names tests, which name it', (heading, section) => {
    const proofs = [...section.matchAll(/\]\(\.\.\/(test\/[^)]+)\)/g)].map(([, file = '']) => file);
    expect(proofs.length).toBeGreaterThan(0);
    const guarantee = new RegExp(`\\b${heading.split(' ')[0]}\\b`);
    expect(proofs.filter((file) => !guarantee.test(read(file)))).toEqual([]);
  });
});

function decorate(options: object): void {
  class Service {
    async method(): Promise<void> {}
  }
  const { prototype } = Service;
  DistributedLock(options)(
    prototype,
    'method',
    Object.getOwnPropertyDescriptor(prototype, 'method') as TypedPropertyDescriptor<() => Promise<void>>,
  );
}
