// Runs an app of `examples` with the library of this folder: npm run example -- cron
// It is installed once, in .cache/examples; a second terminal starts a second instance.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildIfChanged, isOld } from './build-if-changed.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const [name = '', script = 'start', ...args] = process.argv.slice(2);
const source = join(root, 'examples', name);
const home = join(root, '.cache/examples', name);

if (name === '' || !existsSync(join(source, 'package.json'))) {
  const names = readdirSync(join(root, 'examples'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  console.error(`npm run example -- <name> [npm script]: one of ${names.map((each) => each.name).join(', ')}`);
  process.exit(2);
}
process.chdir(root);
if (isOld({ from: ['lib', `examples/${name}`], to: `.cache/examples/${name}/node_modules/.package-lock.json` })) {
  buildIfChanged();
  rmSync(home, { recursive: true, force: true });
  cpSync(source, home, { recursive: true, filter: (path) => !/[\\/](node_modules|dist)$/.test(path) });
  npm(['pack', '--ignore-scripts', '--silent', '--pack-destination', home]);
  const tarball = readdirSync(home).find((file) => file.endsWith('.tgz'));
  npm(['install', '--no-audit', '--no-fund', `./${tarball}`], home);
}
npm(['run', script, ...args], home);

function npm(command, cwd = root) {
  const { status } = spawnSync('npm', command, { cwd, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
