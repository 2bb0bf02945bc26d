// What .github/workflows/release.yml runs. `node scripts/release.mjs version` makes the next version of the changesets; `publish` builds and publishes it.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const STEPS = {
  version: [
    ['node', 'scripts/packages.mjs', 'scripts', 'changeset', 'version'],
    dateChangelog,
    ['npm', 'install', '--package-lock-only', '--ignore-scripts'],
  ],
  publish: [
    ['npm', 'run', 'build'],
    ['node', 'scripts/packages.mjs', 'scripts', 'changeset', 'publish'],
  ],
};

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
for (const step of STEPS[process.argv[2]]) {
  if (typeof step === 'function') step();
  else if (spawnSync(step[0], step.slice(1), { stdio: 'inherit' }).status !== 0) process.exit(1);
}

/** Writes the date below the newest version. The heading stays as it is: release notes are found by it. */
function dateChangelog() {
  const today = new Date().toISOString().slice(0, 10);
  writeFileSync('CHANGELOG.md', readFileSync('CHANGELOG.md', 'utf8').replace(/^(## .+\n)\n(?!_)/m, `$1\n_${today}_\n\n`));
}
