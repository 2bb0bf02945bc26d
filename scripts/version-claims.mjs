// The versions that docs claim: between `<!-- versions: redis valkey -->` and `<!-- /versions -->` stand those of docs/versions.json.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const MARKED = /(<!-- versions: ([\w ]+) -->).*?(<!-- \/versions -->)/gs;
const TITLES = {
  redis: 'Redis',
  valkey: 'Valkey',
  redict: 'Redict',
  postgres: 'PostgreSQL',
  mysql: 'MySQL',
  mariadb: 'MariaDB',
  etcd: 'etcd',
  zookeeper: 'ZooKeeper',
};

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
 * @param {Record<string, Record<string, string>>} tested for each engine its versions, and where they are from
 */
function withVersions(text, tested) {
  return text.replace(MARKED, (_all, start, names, end) => {
    const lists = names.split(' ').flatMap((name) => {
      const versions = inOrder(Object.keys(tested[name] ?? {}));
      return versions.length > 0 ? [`${TITLES[name]} ${versions.join(', ')}`] : [];
    });
    return start + lists.join('; ') + end;
  });
}

/** The oldest first. */
export function inOrder(versions) {
  return [...versions].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
}
