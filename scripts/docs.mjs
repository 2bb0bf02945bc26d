// Writes the parts of README and docs that are made from the tests, and from docs/versions.json.
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { integrationsTable } from '../test/integrations/table.ts';
import { pagesWithVersions } from './version-claims.mjs';
import { writeIfChanged } from './write-if-changed.mjs';

const file = fileURLToPath(new URL('../docs/integrations.md', import.meta.url));
const text = await readFile(file, 'utf8');
const marked = /(<!-- table -->\n).*?(\n<!-- \/table -->)/s;
if (!marked.test(text)) throw new Error(`${file} has no <!-- table --> … <!-- /table -->`);
await writeFile(
  file,
  text.replace(marked, (_all, start, end) => start + integrationsTable() + end),
);
for (const { path, right } of pagesWithVersions(fileURLToPath(new URL('..', import.meta.url)))) writeIfChanged(path, right);
