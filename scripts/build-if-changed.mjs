import { spawnSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const BUILD = [process.execPath, 'scripts/build.mjs'];
const LIBRARY = { what: 'the library', command: BUILD, from: ['lib', 'scripts/build.mjs', 'scripts/schematics', 'tsconfig.json'] };
const SHOP = {
  what: 'the shop',
  command: ['node_modules/.bin/tsc', '-p', 'scripts/demo/tsconfig.build.json', '--noCheck', '--noResolve', '--isolatedModules'],
  from: ['sample-app/src', 'scripts/demo', 'dist/esm/index.js'],
  to: '.cache/demo/scripts/demo/shop/main.js',
};

/** The builds for the demos: no types, no CommonJS. */
export const DEMO_BUILDS = [{ ...LIBRARY, command: [...BUILD, '--esm'], to: 'dist/esm/index.js' }, SHOP];

/** Builds the library and the apps of the demo, each only if it is older than what it is made of. */
export function buildIfChanged() {
  for (const build of [{ ...LIBRARY, to: 'dist/cjs/package.json' }, SHOP]) {
    if (!isOld(build)) continue;
    const [program, ...args] = build.command;
    const { status } = spawnSync(program, args, { cwd: root, stdio: 'inherit' });
    if (status !== 0) process.exit(status ?? 1);
  }
}

/** Whether what it makes is older than what it is made of. */
export function isOld({ from, to }) {
  return Math.max(...from.map(newestIn)) > newestIn(to);
}

/** When the newest file there was changed, ms since 1970; 0: there is none. Generated files count for what they are made from. */
function newestIn(path) {
  const whole = join(root, path);
  const stat = statSync(whole, { throwIfNoEntry: false });
  if (!stat?.isDirectory()) return stat?.mtimeMs ?? 0;
  return Math.max(
    0,
    ...readdirSync(whole, { recursive: true })
      .filter((name) => !name.includes('.generated.'))
      .map((name) => statSync(join(whole, name)).mtimeMs),
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) buildIfChanged();
