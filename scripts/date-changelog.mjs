// Writes the date below the newest version of CHANGELOG.md, which changesets does not. The heading stays as it is: release notes are found by it.
import { readFileSync, writeFileSync } from 'node:fs';

const file = new URL('../CHANGELOG.md', import.meta.url);
const today = new Date().toISOString().slice(0, 10);
writeFileSync(file, readFileSync(file, 'utf8').replace(/^(## .+\n)\n(?!_)/m, `$1\n_${today}_\n\n`));
