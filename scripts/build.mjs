// Builds dist/esm and dist/cjs from lib, each with its own types, and dist/schematics, which `nest add` runs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import './embed-lua.mjs';
import './embed-page.mjs';

const root = new URL('../', import.meta.url);
const compiler = fileURLToPath(import.meta.resolve('typescript/bin/tsc'));

async function compiles(project) {
  const child = spawn(process.execPath, [compiler, '-p', project], { cwd: root, stdio: 'inherit' });
  const [code] = await once(child, 'exit');
  return code === 0;
}

await rm(new URL('dist/', root), { recursive: true, force: true });
// The sample app has a package.json of its own. It finds the library as `npm install` in its folder would link it.
await mkdir(new URL('sample-app/node_modules/', root), { recursive: true });
await rm(new URL('sample-app/node_modules/nestjs-distributed-lock', root), { force: true });
await symlink('../..', new URL('sample-app/node_modules/nestjs-distributed-lock', root));
const compiled = await Promise.all(['tsconfig.esm.json', 'tsconfig.cjs.json', 'scripts/schematics/tsconfig.json'].map(compiles));
if (compiled.includes(false)) process.exit(1);
// The package says "type": "module"; this makes Node and TypeScript read these as what they are.
for (const folder of ['cjs', 'schematics']) await writeFile(new URL(`dist/${folder}/package.json`, root), '{"type":"commonjs"}\n');
await cp(new URL('lib/stores/redis/clients.cjs', root), new URL('dist/cjs/stores/redis/clients.cjs', root));
// What it loads must be CommonJS, which can be loaded at once everywhere: Jest cannot require() an ES module.
await writeFile(new URL('dist/esm/stores/redis/clients.cjs', root), "module.exports = require('../../../cjs/stores/redis/clients.cjs');\n");
for (const file of ['collection.json', 'nest-add/schema.json']) {
  await cp(new URL(`scripts/schematics/${file}`, root), new URL(`dist/schematics/${file}`, root));
}
