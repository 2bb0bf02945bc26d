// Uses the packed library in small applications on every version that it is for: Nest × Node × module kind × test runner, ioredis × Node, Bun and Deno.
//
//   npm run nightly -- matrix [--tarball other.tgz] [nest|ioredis|jest|vitest|runtimes]      see matrix/README.md
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { startPostgres } from '../test/support/postgres-server.ts';
import { startRedis } from '../test/support/redis-server.ts';
import { Explained } from './leftovers.mjs';
import { nodeBuilds, withNode } from './nodes.mjs';
import { inTemporaryFolder, install, pack, positionals, root, run, step } from './packed.mjs';

const PARALLEL = 2;
const NAMED = ['@nestjs/core', 'ioredis', 'jest', 'vitest', 'bun', 'deno'];
const matrix = join(root, 'scripts/matrix');

await inTemporaryFolder('matrix', async (folder, startServer) => {
  const redis = await startServer('a private redis-server', () => startRedis({ port: 'free' }));
  const postgres = await startServer('a private Postgres', startPostgres);
  const [tarball, nodes, apps] = await Promise.all([
    step('npm pack', () => pack(folder)),
    step('builds of Node', () => nodeBuilds(join(folder, 'nodes'))),
    appsOf(positionals),
  ]);
  await inParallel(apps, (app, index) => step(`npm install: ${app.title}`, () => installApp(app, join(folder, `app-${index}`), tarball)));

  const env = { REDIS_URL: `redis://127.0.0.1:${redis.port}`, TEST_POSTGRES: postgres.url, NODE_OPTIONS: '' };
  const table = {};
  const failures = [];
  const runs = apps.flatMap((app) =>
    app.scripts.flatMap((script) => nodes.slice(app.manifest.once ? -1 : 0).map((node) => ({ app, script, node }))),
  );
  for (const { app, script, node } of runs) (table[`${app.title}: ${script}`] ??= {})[`Node ${node.version}`] = '';
  await inParallel(runs, async ({ app, script, node }) => {
    const title = `${app.title}: ${script}`;
    table[title][`Node ${node.version}`] = await outcome(app, script, node, env).catch((error) => {
      failures.push(`FAILED  ${title}, Node ${node.version}\n${error.message}`);
      return 'FAILED';
    });
  });
  console.table(table);
  if (failures.length) throw new Explained(failures.join('\n\n'));
});

/** An application for each variant in the folders of the matrix. */
async function appsOf(names) {
  const folders = (await readdir(matrix, { withFileTypes: true })).filter((entry) => entry.isDirectory()).map(({ name }) => name);
  const wanted = names.length ? names : folders;
  const apps = await Promise.all(
    wanted.map(async (name) => {
      const { variants, ...manifest } = JSON.parse(await readFile(join(matrix, name, 'package.json'), 'utf8'));
      return Object.entries(variants).map(([variant, { dependencies, ...others }]) => ({
        name,
        variant,
        scripts: Object.keys(manifest.scripts).filter((script) => script !== 'setup'),
        manifest: { ...manifest, ...others, dependencies: { ...manifest.dependencies, ...dependencies } },
        title: `${name}, ${variant}`,
      }));
    }),
  );
  return apps.flat();
}

async function installApp(app, folder, tarball) {
  await cp(join(matrix, app.name), folder, { recursive: true, filter: (path) => !path.includes('node_modules') });
  for (const file of app.manifest.shared ?? []) await cp(join(matrix, file), join(folder, basename(file)));
  await writeFile(join(folder, 'package.json'), JSON.stringify(app.manifest));
  await install(folder, [tarball]);
  await run('npm', ['run', 'setup', '--if-present'], folder);
  const versions = NAMED.filter((named) => named in app.manifest.dependencies).map(async (named) => {
    const { version } = JSON.parse(await readFile(join(folder, 'node_modules', named, 'package.json'), 'utf8'));
    return `${named.replace('@nestjs/core', 'Nest')} ${version}`;
  });
  app.folder = folder;
  app.title = `${app.name}, ${app.variant} (${(await Promise.all(versions)).join(', ')})`;
}

async function outcome({ folder, manifest }, script, { major, command }, env) {
  const since = Number(/\d+/.exec(manifest.engines?.node)?.[0] ?? 0);
  if (major < since) return `from ${since} on`;
  const start = performance.now();
  await run('npm', ['run', script], folder, { ...env, PATH: withNode(command).PATH });
  return `ok ${((performance.now() - start) / 1000).toFixed(1)} s`;
}

async function inParallel(items, work) {
  const waiting = [...items.entries()];
  const worker = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await work(next[1], next[0]);
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
}
