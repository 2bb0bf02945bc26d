import { filesIn, read } from '../support/markdown.js';
import { integrationsTable } from './table.js';

describe('docs/integrations.md', () => {
  it('has the table of what the specs prove; `npm run docs` writes it', () => {
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
