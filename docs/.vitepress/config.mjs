// The pages of the site are those of the repository, as they are on GitHub; only docs/site is of the site alone.
import { execFileSync } from 'node:child_process';
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { posix, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deadAnchorsIn } from './dead-anchors.mjs';
import { renderMermaidSVG } from '../../scripts/node_modules/beautiful-mermaid/dist/index.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (file) => readFileSync(root + file, 'utf8');
const { name, version, description, repository } = JSON.parse(read('package.json'));
const repo = repository.url.replace(/^git\+|\.git$/g, '');
const sources = `${repo}/blob/main/`;
const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="none" stroke="#3451b2" stroke-width="2" d="M5 8V5a3 3 0 0 1 6 0v3"/><rect x="3" y="7" width="10" height="8" rx="1.5" fill="#3451b2"/></svg>';
/** Where GitHub Pages publishes the site. */
const site = new URL(process.env.DOCS_URL ?? `https://${repo.split('/').at(-2)}.github.io/${name}/`);
const titleOf = (file) => /^# (.+)$/m.exec(read(file))[1];
const docs = readdirSync(`${root}docs`).filter((file) => file.endsWith('.md'));
/** As GitHub makes the anchor of a heading. */
const slugify = (heading) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
/** The first sentences of a page, without their markup: what search engines show of it. */
const descriptionOf = (file) => {
  const paragraphs = read(file)
    .replace(/^```.*?^```$/gms, '')
    .split(/\n\n+/);
  const first =
    paragraphs.map((each) => each.replace(/^#.*\n/, '')).find((each) => /^[\p{L}`@*[]/u.test(each) && !each.startsWith('[!')) ?? '';
  const plain = first
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/<[^>]+>|[*`]/g, '')
    .replace(/\s+/g, ' ')
    .replace(/:?\s*$/, '.')
    .replace('..', '.');
  if (plain.length < 20) throw new Error(`${file} does not begin with a sentence that says what it is about`);
  return /^.{60,160}?[.?](?= |$)/.exec(plain)?.[0] ?? (plain.length <= 160 ? plain : plain.slice(0, 160).replace(/\s\S*$/, '…'));
};
const titled = (files) => Object.fromEntries(files.map((file) => [titleOf(file), file]));

/** Each page has one place. */
const TABS = {
  Guide: {
    Start: {
      Overview: 'README.md',
      'All pages': 'docs/README.md',
      Tutorial: 'docs/tutorial.md',
      Recipes: 'docs/recipes.md',
      Troubleshooting: 'docs/troubleshooting.md',
      Examples: 'examples/README.md',
    },
    Basics: {
      Keys: 'docs/keys.md',
      Options: 'docs/options.md',
      Configuration: 'docs/configuration.md',
      'Waiting and timeouts': 'docs/waiting.md',
      'Leases, fencing tokens, signals': 'docs/leases.md',
      'Hand a lease to another process': 'docs/hand-over.md',
      Errors: 'docs/errors.md',
      Testing: 'docs/testing.md',
    },
    Stores: {
      'Choosing a store': 'docs/choosing-a-store.md',
      Redis: 'docs/redis.md',
      'Redis: Sentinel, Cluster, managed': 'docs/redis-topologies.md',
      Postgres: 'docs/postgres.md',
      'MySQL, MariaDB': 'docs/mysql.md',
      'etcd, ZooKeeper': 'docs/consensus.md',
      Files: 'docs/file.md',
      'A quorum of servers': 'docs/quorum.md',
      'A store of your own': 'docs/own-store.md',
    },
  },
  Locks: {
    Locks: {
      'Read/write lock': 'docs/read-write-lock.md',
      Semaphore: 'docs/semaphore.md',
      'Multi-lock': 'docs/multi-lock.md',
      'Count-down latch': 'docs/count-down-latch.md',
      Leaders: 'docs/leaders.md',
    },
  },
  Integrations: {
    'In Nest': {
      'Where it works': 'docs/integrations.md',
      'HTTP and GraphQL': 'docs/http.md',
      Crons: 'docs/cron.md',
      Queues: 'docs/queues.md',
      'Events, CQRS, microservices, WebSockets': 'docs/messaging.md',
    },
    Databases: { 'Transactions and fence guard': 'docs/fence-guard.md' },
  },
  Operate: {
    Look: { Dashboard: 'docs/dashboard.md', 'Command line': 'docs/cli.md', 'Inspect and free keys': 'docs/operate.md' },
    Watch: { 'Metrics and traces': 'docs/metrics.md', 'Health checks': 'docs/health.md', 'Examine the store': 'docs/doctor.md' },
    Change: { 'Compatibility and upgrading': 'docs/upgrading.md', 'Coming from another library': 'docs/migrating.md' },
  },
  Reference: {
    Reference: {
      Guarantees: 'docs/guarantees.md',
      'Known limits': 'docs/known-limits.md',
      API: 'api/index.md',
      Glossary: 'docs/glossary.md',
    },
    Benchmarks: { Results: 'bench/results/README.md', Method: 'bench/README.md' },
    Project: titled(readdirSync(root).filter((file) => /^(?!README).*\.md$/.test(file))),
  },
};
/** Their tables have many columns: no outline beside them. */
const WIDE = ['docs/choosing-a-store.md', 'docs/redis-topologies.md', 'docs/guarantees.md', 'bench/results/README.md'];

const pagesOf = (groups) => Object.values(groups).flatMap((group) => Object.values(group));
const listed = Object.values(TABS).flatMap(pagesOf);
const missing = docs.map((file) => `docs/${file}`).filter((file) => !listed.includes(file));
const twice = listed.filter((file, index) => listed.indexOf(file) !== index);
if (missing.length + twice.length > 0) throw new Error(`docs/.vitepress/config.mjs must list once: ${[...missing, ...twice].join(', ')}`);

const isPage = (file) => listed.includes(file) || file.startsWith('api/');
const onSite = (link) => `/${link.replace(/^README\.md/, 'overview.md')}`;

/** Where a relative link of a page leads to: a page of the site, or a file in the repository. */
function resolve(page, link) {
  const [path, hash] = link.split('#');
  const file = posix.join(posix.dirname(page), path);
  const target = file + (hash === undefined ? '' : `#${hash}`);
  return isPage(file) ? onSite(target) : sources + target;
}

const sidebarOf = (groups) =>
  Object.entries(groups).map(([text, links], index) => ({
    text,
    collapsed: index > 0,
    items: Object.entries(links).map(([title, link]) => ({ text: title, link: onSite(link) })),
  }));

export default {
  title: name,
  description,
  base: site.pathname,
  sitemap: { hostname: site.href },
  srcDir: '..',
  outDir: '../dist/site',
  cacheDir: '../.cache/vitepress',
  srcExclude: ['*.zh-CN.md', '!(docs|api|bench|examples)/**/*', 'bench/contestants/**', 'bench/goals.md', 'examples/*/**'],
  rewrites: { 'README.md': 'overview.md', 'docs/site/home.md': 'index.md' },
  lastUpdated: false,
  head: [
    ['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(ICON)}` }],
    ['meta', { property: 'og:type', content: 'website' }],
    ['meta', { property: 'og:site_name', content: name }],
    ['meta', { property: 'og:image', content: `${site.href}preview.webp` }],
  ],
  transformHead: ({ title, description: text }) => [
    ['meta', { property: 'og:title', content: title }],
    ['meta', { property: 'og:description', content: text }],
  ],
  markdown: {
    anchor: { slugify },
    config: (md) => {
      md.core.ruler.push('links', ({ tokens, env }) => {
        const page = relative(root, env.realPath ?? env.path);
        for (const token of tokens.flatMap(({ children }) => children ?? [])) {
          const link = token.type === 'link_open' ? token.attrGet('href') : undefined;
          if (link && !/^(\w+:|[#/])/.test(link)) token.attrSet('href', resolve(page, link));
        }
      });
      const { fence } = md.renderer.rules;
      md.renderer.rules.fence = (tokens, index, ...rest) => {
        const { info, content } = tokens[index];
        if (info !== 'mermaid') return fence(tokens, index, ...rest);
        const picture = ([theme, fg, bg]) => {
          const svg = renderMermaidSVG(content, { fg, bg, muted: fg, transparent: true }).replace(/@import [^;]+;/, '');
          return `<img class="${theme}-only" alt="Diagram" src="data:image/svg+xml,${encodeURIComponent(svg)}">`;
        };
        return `<p>${[
          ['light', '#1f2328', '#fff'],
          ['dark', '#dfdfd6', '#1b1b1f'],
        ]
          .map(picture)
          .join('')}</p>`;
      };
    },
  },
  transformPageData: ({ filePath, frontmatter, title }) => {
    if (WIDE.includes(filePath)) frontmatter.aside = false;
    if (frontmatter.hero) return { description: frontmatter.hero.tagline };
    return { description: filePath.startsWith('api/') ? `${title} in the API of ${name}. ${description}` : descriptionOf(filePath) };
  },
  buildEnd: ({ outDir }) => {
    const dead = deadAnchorsIn(outDir, site.pathname);
    if (dead.length > 0) throw new Error(`Links to headings that are not there:\n${dead.join('\n')}`);
    copyFileSync(`${root}docs/images/dashboard-light.webp`, `${outDir}/preview.webp`);
    writeFileSync(`${outDir}/dashboard.html`, execFileSync(process.execPath, [`${root}scripts/embed-page.mjs`, '--demo']));
    const lines = Object.entries(TABS).flatMap(([tab, groups]) => [
      `\n## ${tab}\n`,
      ...pagesOf(groups)
        .filter((file) => !file.startsWith('api/'))
        .map((file) => `- [${titleOf(file)}](${sources}${file}): ${descriptionOf(file)}`),
    ]);
    writeFileSync(`${outDir}/llms.txt`, `# ${name}\n\n> ${description}\n${lines.join('\n')}\n`);
  },
  themeConfig: {
    search: {
      provider: 'local',
      // Their many headings would stand before the pages that answer a question.
      options: { _render: (text, env, md) => (/^(api|bench)\//.test(env.relativePath) ? '' : md.render(text, env)) },
    },
    outline: [2, 3],
    socialLinks: [{ icon: 'github', link: repo }],
    editLink: { pattern: `${repo}/edit/main/:path`, text: 'Edit this page' },
    footer: { message: `Version ${version}, MIT licence`, copyright: 'Node 20.19 or later; Nest 10, 11 and 12' },
    nav: [
      ...Object.entries(TABS).map(([text, groups]) => {
        const files = pagesOf(groups);
        const pattern = files.map((file) => onSite(file).replace(/(index)?\.md$/, '')).join('|');
        return { text, link: onSite(files[0]), activeMatch: `^(${pattern})` };
      }),
      {
        text: version,
        items: ['CHANGELOG.md', 'SECURITY.md', 'CONTRIBUTING.md'].map((file) => ({ text: titleOf(file), link: onSite(file) })),
      },
    ],
    sidebar: Object.fromEntries([
      ...Object.values(TABS).flatMap((groups) => pagesOf(groups).map((file) => [onSite(file), sidebarOf(groups)])),
      ['/api/', sidebarOf(TABS.Reference)],
    ]),
  },
};
