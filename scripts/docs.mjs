// Writes the parts of docs that are made from the tests.
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { integrationsTable } from '../test/integrations/table.ts';

const file = fileURLToPath(new URL('../docs/integrations.md', import.meta.url));
const text = await readFile(file, 'utf8');
const marked = /(<!-- table -->\n).*?(\n<!-- \/table -->)/s;
if (!marked.test(text)) throw new Error(`${file} has no <!-- table --> … <!-- /table -->`);
await writeFile(
  file,
  text.replace(marked, (_all, start, end) => start + integrationsTable() + end),
);
