// Builds dist/esm and dist/cjs from lib, each with its own types, and dist/schematics, which `nest add` runs. Only the types have comments.
// `--esm`: only what runs as ESM, for the demos.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import './embed-lua.mjs';
import './embed-page.mjs';

const root = new URL('../', import.meta.url);
/** Files of lib that are CommonJS in both builds. */
const COMMONJS = ['core/store/client-packages.cjs', 'stores/redis/clients.cjs'];
const compiler = fileURLToPath(import.meta.resolve('typescript/bin/tsc'));

async function compiles(project) {
  const child = spawn(process.execPath, [compiler, '-p', project], { cwd: root, stdio: 'inherit' });
  const [code] = await once(child, 'exit');
  return code === 0;
}

await rm(new URL('dist/', root), { recursive: true, force: true });
if (process.argv.includes('--esm')) {
  if (!(await compiles('tsconfig.esm.json'))) process.exit(1);
  for (const file of COMMONJS) await cp(new URL(`lib/${file}`, root), new URL(`dist/esm/${file}`, root));
  process.exit(0);
}
// The sample app has a package.json of its own. It finds the library as `npm install` in its folder would link it.
await mkdir(new URL('sample-app/node_modules/', root), { recursive: true });
await rm(new URL('sample-app/node_modules/nestjs-distributed-lock', root), { force: true });
await symlink('../..', new URL('sample-app/node_modules/nestjs-distributed-lock', root));
const compiled = await Promise.all(
  ['tsconfig.esm.json', 'tsconfig.cjs.json', 'tsconfig.types.json', 'scripts/schematics/tsconfig.json'].map(compiles),
);
if (compiled.includes(false)) process.exit(1);
// The package says "type": "module"; this makes Node and TypeScript read these as what they are.
for (const folder of ['cjs', 'schematics']) await writeFile(new URL(`dist/${folder}/package.json`, root), '{"type":"commonjs"}\n');
for (const file of COMMONJS) {
  await cp(new URL(`lib/${file}`, root), new URL(`dist/cjs/${file}`, root));
  // What it loads must be CommonJS, which can be loaded at once everywhere: Jest cannot require() an ES module.
  await writeFile(new URL(`dist/esm/${file}`, root), `module.exports = require('../../../cjs/${file}');\n`);
}
// Two long texts: the ESM build takes them from the other one.
for (const [file, names] of [
  ['dashboard/page.generated', 'page, scriptHash, styleHash'],
  ['stores/redis/lua.generated', 'lua'],
]) {
  const up = '../'.repeat(file.split('/').length);
  await writeFile(new URL(`dist/esm/${file}.js`, root), `export { ${names} } from '${up}cjs/${file}.js';\n`);
}
await keepTypes();
for (const file of ['collection.json', 'nest-add/schema.json']) {
  await cp(new URL(`scripts/schematics/${file}`, root), new URL(`dist/schematics/${file}`, root));
}

/** Keeps the types that an entry leads to, for both builds. The text is the same in both. */
async function keepTypes() {
  const esm = fileURLToPath(new URL('dist/esm', root));
  const { exports } = JSON.parse(await readFile(new URL('package.json', root), 'utf8'));
  const wanted = new Set();
  const want = async (file) => {
    if (wanted.has(file)) return;
    wanted.add(file);
    for (const [, path] of (await readFile(file, 'utf8')).matchAll(/(?:from |import\(|import )['"](\..+)\.js['"]/g))
      await want(join(dirname(file), `${path}.d.ts`));
  };
  for (const { import: entry } of Object.values(exports)) if (entry) await want(fileURLToPath(new URL(entry.types, root)));
  for (const name of await readdir(esm, { recursive: true })) {
    if (!name.endsWith('.d.ts')) continue;
    const file = join(esm, name);
    if (wanted.has(file)) await cp(file, file.replace(esm, fileURLToPath(new URL('dist/cjs', root))));
    else await rm(file);
  }
}
