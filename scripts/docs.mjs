// Writes the parts of README and docs that are made from the tests, from docs/versions.json, and from the results of the chaos runs.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { writeReport } from '../test/chaos/report.ts';
import { integrationsList } from '../test/integrations/list.ts';
import { guaranteesTable } from '../test/readme/guarantees-table.ts';
import { pagesWithVersions } from './version-claims.mjs';
import { writeIfChanged } from './write-if-changed.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
writePart('docs/integrations.md', 'list', integrationsList());
writePart('test/README.md', 'guarantees', guaranteesTable());
for (const { path, right } of pagesWithVersions(process.cwd())) writeIfChanged(path, right);
writeReport();

function writePart(file, name, part) {
  const [before, rest] = readFileSync(file, 'utf8').split(`<!-- ${name} -->\n`);
  const after = rest?.split(`<!-- /${name} -->`)[1];
  if (after === undefined) throw new Error(`${file} has no <!-- ${name} --> … <!-- /${name} -->`);
  writeIfChanged(file, `${before}<!-- ${name} -->\n\n${part}\n\n<!-- /${name} -->${after}`);
}
