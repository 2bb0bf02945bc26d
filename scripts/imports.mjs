// What a file of the tests reaches by its imports, and by the child processes whose path it has: the files of this project, and the packages.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const IMPORT =
  /^(?:import|export) (?!type )[^;'"]*?\bfrom '([^'\s]+)'|\bimport\(?\s*'([^'\s]+)'|\brequire\('([^'\s]+)'\)|'(test\/[^'\s]+\.child\.ts)'/gm;
const known = new Map();

/** @returns {string[]} such as `test/fence-guard/clients.ts`, `test/core/call-path.child.ts`, `yaml` */
function importsOf(file) {
  const names = Array.from(readFileSync(join(root, file), 'utf8').matchAll(IMPORT), ([, ...found]) => found.find(Boolean));
  return names.map((name) => {
    if (!name.startsWith('.')) return /\.[cm]?ts$/.test(name) ? name : name.split('/', name.startsWith('@') ? 2 : 1).join('/');
    const path = relative(root, join(root, dirname(file), name));
    return existsSync(join(root, path)) ? path : path.replace(/js$/, 'ts');
  });
}

/** @returns {Set<string>} files, and packages without a path inside of them. What the library imports is not followed. */
export function reachedFrom(suite) {
  const reached = new Set([suite]);
  for (const one of reached) {
    if (!known.has(one)) known.set(one, one.startsWith('lib/') || !existsSync(join(root, one)) ? [] : importsOf(one));
    for (const name of known.get(one)) reached.add(name);
  }
  return reached;
}

/** @returns {string[]} of these files those that import one of the changed ones, at any distance and be it a type, and the changed ones */
export function importersOf(changed, files) {
  const { paths } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8')).compilerOptions;
  const importers = new Map();
  for (const file of files) {
    for (const [, name] of readFileSync(join(root, file), 'utf8').matchAll(/(?:from|import\(?|require\() ?'([^'\s]+)'/g)) {
      const path = paths[name]?.[0] ?? (name.startsWith('.') ? join(dirname(file), name) : '');
      for (const one of [join(path), path.replace(/js$/, 'ts')]) importers.set(one, [...(importers.get(one) ?? []), file]);
    }
  }
  const reached = new Set(changed);
  for (const one of reached) for (const file of importers.get(one) ?? []) reached.add(file);
  return files.filter((file) => reached.has(file));
}

const namesOf = (folder) => {
  const { dependencies = {}, devDependencies = {} } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
  return Object.keys({ ...dependencies, ...devDependencies });
};
const ofRoot = namesOf('.');
const ofTests = namesOf('test').filter((name) => !ofRoot.includes(name));

/** Whether the suite runs only with the packages of test/package.json. */
export const needsPackages = (suite) => reachesAny(suite, ofTests);

/** Whether the suite reaches what starts a server. */
export const startsServers = (suite) => reachesAny(suite, ['test/support/services.ts', 'test/support/shared-server.ask.ts']);

function reachesAny(suite, names) {
  const reached = reachedFrom(suite);
  return names.some((name) => reached.has(name));
}
