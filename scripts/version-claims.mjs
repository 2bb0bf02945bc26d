// The versions that docs claim: between `<!-- versions: redis valkey -->` and `<!-- /versions -->` stand those of docs/versions.json.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeIfChanged } from './write-if-changed.mjs';

const MARKED = /(<!-- versions: ([\w ]+) -->).*?(<!-- \/versions -->)/gs;
/** In the order of the file. */
const TITLES = {
  node: 'Node',
  redis: 'Redis',
  valkey: 'Valkey',
  redict: 'Redict',
  postgres: 'PostgreSQL',
  mysql: 'MySQL',
  mariadb: 'MariaDB',
  etcd: 'etcd',
  zookeeper: 'ZooKeeper',
};

/**
 * The claims of docs after some runs: what passed now, and what was not repeated.
 *
 * @param {Record<string, Record<string, { from: string, passed: string }>>} before for each engine its versions, where they are from, and when they passed last
 * @param {{ engine: string, version: string, from: string, passed: boolean }[]} runs
 */
export function claimsAfter(before, runs, date) {
  const after = structuredClone(before);
  for (const { engine, version, from, passed } of runs) {
    if (passed) (after[engine] ??= {})[version] = { from, passed: date };
    else delete after[engine]?.[version];
  }
  const engines = Object.keys(TITLES).filter((engine) => Object.keys(after[engine] ?? {}).length > 0);
  const sorted = (versions) => Object.fromEntries(inOrder(Object.keys(versions)).map((version) => [version, versions[version]]));
  return Object.fromEntries(engines.map((engine) => [engine, sorted(after[engine])]));
}

/** Writes what passed into docs/versions.json and the pages, and says what they claim of these engines by an earlier run. */
export function writeClaims(root, engines, runs) {
  const file = join(root, 'docs/versions.json');
  const date = new Date().toISOString().slice(0, 10);
  const claims = claimsAfter(JSON.parse(readFileSync(file, 'utf8')), runs, date);
  writeFileSync(file, `${JSON.stringify(claims, undefined, 2)}\n`);
  for (const [engine, version] of engines.flatMap((name) => Object.keys(claims[name] ?? {}).map((each) => [name, each]))) {
    const { passed } = claims[engine][version];
    if (passed !== date) console.log(`Not repeated: ${TITLES[engine]} ${version}, which passed on ${passed}`);
  }
  for (const { path, right } of pagesWithVersions(root)) writeIfChanged(path, right);
}

/** The pages that have such marks. @returns {{ path: string, text: string, right: string }[]} `right`: with the versions of docs/versions.json */
export function pagesWithVersions(root) {
  const tested = JSON.parse(readFileSync(join(root, 'docs/versions.json'), 'utf8'));
  return readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(root, 'docs', name))
    .map((path) => ({ path, text: readFileSync(path, 'utf8') }))
    .filter(({ text }) => text.includes('<!-- versions: '))
    .map(({ path, text }) => ({ path, text, right: withVersions(text, tested) }));
}

/**
 * @param text of a page in Markdown
 * @param {Record<string, Record<string, object>>} tested for each engine its versions
 */
function withVersions(text, tested) {
  return text.replace(MARKED, (_all, start, names, end) => {
    const lists = names.split(' ').flatMap((name) => {
      const versions = inOrder(Object.keys(tested[name] ?? {}));
      return versions.length > 0 ? [`${TITLES[name]} ${versions.join(', ')}`] : [];
    });
    return start + (lists.join('; ') || 'none yet') + end;
  });
}

/** The oldest first. */
function inOrder(versions) {
  return [...versions].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
}
