// Every entry of the package loads by `import` and by `require`, each from its own build, with the same names.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { name, exports } = require('nestjs-distributed-lock/package.json');
const named = (module) => Object.keys(module).filter((key) => !['default', '__esModule', 'module.exports'].includes(key));

for (const subpath of Object.keys(exports).filter((subpath) => subpath !== './package.json')) {
  const entry = name + subpath.slice(1);
  assert.match(import.meta.resolve(entry), /\/dist\/esm\//);
  assert.match(require.resolve(entry), /[\\/]dist[\\/]cjs[\\/]/);
  const imported = named(await import(entry));
  assert.notEqual(imported.length, 0, `${entry} exports nothing`);
  assert.deepEqual(named(require(entry)).sort(), imported.sort(), `${entry} differs between import and require`);
}
