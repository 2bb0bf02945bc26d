// Builds dist/esm and dist/cjs from lib, each with its own types, and dist/schematics, which `nest add` runs. Only the types have comments.
// `--esm`: only what runs as ESM, for the demos.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import './embed-lua.mjs';
import './embed-page.mjs';

const root = new URL('../', import.meta.url);
/** Files of lib that are CommonJS in both builds. */
const COMMONJS = ['stores/redis/clients.cjs'];
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
  ['stores/redis/lua.generated', 'sources'],
]) {
  const up = '../'.repeat(file.split('/').length);
  await writeFile(new URL(`dist/esm/${file}.js`, root), `export { ${names} } from '${up}cjs/${file}.js';\n`);
}
// The contracts are for one program, the tests of a store, which may be of any kind: they are shipped once.
await removeFrom('dist/esm/testing/store', '.js');
const contracts = 'casTableContract, recordTableContract';
await writeFile(new URL('dist/esm/testing/store.js', root), `export { ${contracts} } from '../../cjs/testing/store.js';\n`);
await keepTypes();
for (const file of ['collection.json', 'nest-add/schema.json']) {
  await cp(new URL(`scripts/schematics/${file}`, root), new URL(`dist/schematics/${file}`, root));
}

/** Keeps the types that an entry leads to, once: the text is the same for both builds, and the entries of the ESM build lead to those of the other one. */
async function keepTypes() {
  const { exports } = JSON.parse(await readFile(new URL('package.json', root), 'utf8'));
  const entries = Object.values(exports).flatMap((entry) => (entry.import ? [entry.import.types.replace('./dist/esm/', '')] : []));
  const wanted = new Set();
  const want = async (file) => {
    if (wanted.has(file)) return;
    wanted.add(file);
    const text = await readFile(new URL(`dist/esm/${file}`, root), 'utf8');
    await writeFile(new URL(`dist/cjs/${file}`, root), text);
    for (const [, path] of text.matchAll(/(?:from |import\(|import )['"](\..+)\.js['"]/g)) await want(join(dirname(file), `${path}.d.ts`));
  };
  for (const entry of entries) await want(entry);
  await removeFrom('dist/esm', '.d.ts');
  for (const entry of entries) {
    const folder = `${join(...entry.split('/').map(() => '..'), 'cjs', dirname(entry))}/`;
    const text = await readFile(new URL(`dist/cjs/${entry}`, root), 'utf8');
    // A module of another package that is extended must be the one that ESM programs import.
    const isExtension = text.includes('declare module');
    const own = isExtension ? text.replaceAll("from './", `from '${folder}`) : `export * from '${folder}${basename(entry, '.d.ts')}.js';\n`;
    await writeFile(new URL(`dist/esm/${entry}`, root), own);
  }
}

async function removeFrom(folder, ending) {
  for (const name of await readdir(new URL(folder, root), { recursive: true })) {
    if (name.endsWith(ending)) await rm(new URL(`${folder}/${name}`, root));
  }
}
