// The site has no content of its own: its pages are README.md, docs/ and what else is listed here, as they are on GitHub.
import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { defineConfig } from 'vitepress';

const root = new URL('../../', import.meta.url);
const { name, description, repository } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
const sources = `${repository.url.replace(/^git\+|\.git$/g, '')}/blob/main/`;
const docs = readdirSync(new URL('docs/', root)).filter((file) => file.endsWith('.md'));
const read = (file) => readFileSync(new URL(file, root), 'utf8');
const titleOf = (file) => /^# (.+)$/m.exec(read(file))[1];
/** As GitHub makes the anchor of a heading. */
const slugify = (heading) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

const OUTLINE = {
  Introduction: {
    Overview: 'README.md',
    Install: 'README.md#install',
    Tutorial: 'docs/tutorial.md',
    Comparison: 'README.md#comparison',
  },
  Guide: {
    Keys: 'docs/keys.md',
    'Waiting and timeouts': 'docs/waiting.md#how-to-choose-a-wait-timeout',
    'Leases, fencing tokens, signals': 'docs/leases.md',
    Errors: 'docs/errors.md',
    'Choosing a store': 'docs/choosing-a-store.md',
    Redis: 'docs/redis.md',
    Postgres: 'docs/postgres.md',
    'MySQL, MariaDB': 'docs/mysql.md',
    etcd: 'docs/etcd.md',
    ZooKeeper: 'docs/zookeeper.md',
    Files: 'docs/file.md',
    'A quorum of servers': 'docs/quorum.md',
    'Several stores': 'docs/configuration.md#several-stores',
    'Without Nest': 'README.md#without-nest',
    Testing: 'docs/testing.md',
  },
  Locks: {
    'Read/write lock': 'docs/read-write-lock.md',
    Semaphore: 'docs/semaphore.md',
    'Multi-lock': 'docs/multi-lock.md',
    'Count-down latch': 'docs/count-down-latch.md',
    'Leader election': 'docs/leader-election.md',
    '@LeaderOnly': 'docs/leader-only.md',
    'Preloaded standby': 'docs/standby.md',
  },
  Integrations: {
    'Where it works': 'docs/integrations.md',
    HTTP: 'docs/http.md',
    GraphQL: 'docs/graphql.md',
    Crons: 'docs/cron.md',
    Queues: 'docs/queues.md',
    'Events, microservices, WebSockets': 'docs/messaging.md',
    Streams: 'docs/streams.md',
    Transactions: 'docs/transactions.md',
    'Fence guard': 'docs/fence-guard.md',
  },
  Operations: {
    'Redis set-ups': 'docs/redis.md#which-set-up-is-safe-for-what',
    'Redis rights': 'docs/redis.md#users-and-rights',
    'Managed Redis': 'docs/redis.md#managed-services',
    'When things fail': 'docs/guarantees.md#when-things-fail',
    'Metrics and traces': 'docs/metrics.md',
    Events: 'docs/configuration.md#events',
    'Health checks': 'docs/health.md',
    Shutdown: 'docs/configuration.md#shutdown',
    'Inspect and free keys': 'docs/operate.md',
    Dashboard: 'docs/dashboard.md',
    'Command line': 'docs/cli.md',
    'Examine the store': 'docs/doctor.md',
    Troubleshooting: 'docs/troubleshooting.md',
    Upgrading: 'docs/upgrading.md',
  },
  Reference: {
    Options: 'docs/options.md',
    'Module options': 'docs/configuration.md#the-module',
    'Store options': 'docs/configuration.md#the-redis-store',
    Errors: 'docs/errors.md',
    Guarantees: 'docs/guarantees.md',
    API: 'api/index.md',
  },
  Internals: {
    'How a call waits': 'docs/waiting.md#how-a-call-waits',
    'Wire format': 'docs/wire-format.md',
    Glossary: 'docs/glossary.md',
    Benchmarks: 'bench/README.md',
    Results: 'bench/results/README.md',
    Contributing: 'CONTRIBUTING.md',
    Security: 'SECURITY.md',
    Changelog: 'CHANGELOG.md',
  },
  Migrating: Object.fromEntries(docs.filter((file) => file.startsWith('from-')).map((file) => [titleOf(`docs/${file}`), `docs/${file}`])),
};

const links = Object.values(OUTLINE).flatMap((group) => Object.values(group).map((link) => link.split('#')));
const listed = links.map(([file]) => file);
const headings = (file) => [...read(file).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => slugify(heading));
const problems = [
  ...docs.filter((file) => !listed.includes(`docs/${file}`)).map((file) => `docs/${file} is not in it`),
  ...links
    .filter(([file, anchor]) => anchor && !headings(file).includes(anchor))
    .map(([file, anchor]) => `no heading #${anchor} in ${file}`),
];
if (problems.length > 0) throw new Error(`The outline of docs/.vitepress/config.mjs: ${problems.join('; ')}.`);

const isPage = (file) => listed.includes(file) || file.startsWith('api/') || file === 'bench/goals.md';
const onSite = (link) => `/${link.replace(/^README\.md/, 'index.md')}`;

/** Where a relative link of a page leads to: a page of the site, or a file in the repository. */
function resolve(page, link) {
  const [path, hash] = link.split('#');
  const file = posix.join(posix.dirname(page), path);
  const target = file + (hash === undefined ? '' : `#${hash}`);
  return isPage(file) ? onSite(target) : sources + target;
}

export default defineConfig({
  title: name,
  description,
  srcDir: '..',
  outDir: '../dist/site',
  cacheDir: '../.cache/vitepress',
  srcExclude: ['!(README|CHANGELOG|CONTRIBUTING|SECURITY).md', '!(docs|api|bench)/**/*', 'bench/contestants/**'],
  rewrites: { 'README.md': 'index.md' },
  lastUpdated: false,
  markdown: {
    anchor: { slugify },
    config: (md) => {
      md.core.ruler.push('links', ({ tokens, env }) => {
        for (const token of tokens.flatMap(({ children }) => children ?? [])) {
          const link = token.type === 'link_open' ? token.attrGet('href') : undefined;
          if (link && !/^(\w+:|[#/])/.test(link)) token.attrSet('href', resolve(env.relativePath, link));
        }
      });
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: 'deep',
    socialLinks: [{ icon: 'github', link: sources.replace('/blob/main/', '') }],
    sidebar: Object.entries(OUTLINE)
      .filter(([, links]) => Object.keys(links).length > 0)
      .map(([text, links]) => ({ text, items: Object.entries(links).map(([title, link]) => ({ text: title, link: onSite(link) })) })),
  },
});
