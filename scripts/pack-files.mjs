// Puts in place what npm packs instead of the files of the repository: a package.json without what only this repository needs, and pages whose links
// lead to the repository, because their targets are not packed. npm runs both around `npm pack`: node scripts/pack-files.mjs replace | restore
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

const root = new URL('../', import.meta.url);
const originals = new URL('dist/originals/', root);
const PAGES = ['README.md', 'README.zh-CN.md', 'CHANGELOG.md'];

restore();
if (process.argv[2] === 'replace') {
  mkdirSync(originals, { recursive: true });
  const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
  for (const part of ['scripts', 'devDependencies', 'overrides']) delete manifest[part];
  const repository = manifest.repository.url.replace(/^git\+|\.git$/g, '');
  replace('package.json', () => `${JSON.stringify(manifest, undefined, 2)}\n`);
  for (const page of PAGES)
    replace(page, (text) =>
      text.replace(/(!?)(\[[^\]]*\]\()(?!\w+:|#)([^)]+)\)/g, (link, image, label, path) =>
        [...PAGES, 'LICENSE'].includes(path) ? link : `${image}${label}${repository}/${image ? 'raw' : 'blob'}/main/${path})`,
      ),
    );
}

function replace(file, change) {
  const path = new URL(file, root);
  const text = change(readFileSync(path, 'utf8'));
  renameSync(path, new URL(file, originals));
  writeFileSync(path, text);
}

/** Also what a pack that was killed has left. */
function restore() {
  for (const file of ['package.json', ...PAGES]) {
    const original = new URL(file, originals);
    if (existsSync(original)) renameSync(original, new URL(file, root));
  }
  rmSync(originals, { recursive: true, force: true });
}
