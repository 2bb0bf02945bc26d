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
  const ofDocs = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'));
  return ['README.md', 'README.zh-CN.md', ...ofDocs.map((name) => `docs/${name}`)].flatMap((page) => {
    const path = join(root, page);
    const text = readFileSync(path, 'utf8');
    if (!text.includes('<!-- versions: ')) return [];
    const options = { short: page.startsWith('README'), language: page.includes('.zh') ? 'zh' : 'en' };
    return [{ path, text, right: withVersions(text, tested, options) }];
  });
}

/**
 * @param text of a page in Markdown
 * @param {Record<string, Record<string, object>>} tested for each engine its versions
 * @param short only the parts of a version that name a release; for a README
 * @param language in which the list is written: `zh` has commas and semicolons of its own
 */
function withVersions(text, tested, { short = false, language = 'en' } = {}) {
  const [comma, semicolon] = language === 'zh' ? ['、', '；'] : [', ', '; '];
  return text.replace(MARKED, (_all, start, names, end) => {
    const lists = names.split(' ').flatMap((name) => {
      const versions = inOrder(Object.keys(tested[name] ?? {})).map((version) => (short ? releaseOf(version) : version));
      return versions.length > 0 ? [`${TITLES[name]} ${[...new Set(versions)].join(comma)}`] : [];
    });
    return start + lists.join(semicolon) + end;
  });
}

/** The oldest first. */
export function inOrder(versions) {
  return [...versions].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
}

/** `8.0` of 8.0.6; `18` of PostgreSQL 18.6. */
function releaseOf(version) {
  return version.split('.').slice(0, -1).join('.');
}
