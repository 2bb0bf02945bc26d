// Uses the packed library in real applications on every version that it is for: Nest × Node × module kind × test runner, and ioredis × Node.
//
//   npm run check:matrix [-- other.tgz]      with that tarball instead of one packed now
import { cp } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { startRedis } from '../test/support/redis-server.ts';
import { APPS } from './matrix/apps.mjs';
import { nodeBuilds } from './matrix/nodes.mjs';
import { printTable } from './matrix/table.mjs';
import { createApp, inTemporaryFolder, installedVersion, name, pack, run, step, toInstall } from './packed.mjs';

const PARALLEL = 2;
const given = process.argv[2];

await inTemporaryFolder('matrix', async (folder, servers) => {
  const redis = await step('a private redis-server', () => startRedis({ port: 'free' }));
  servers.push(redis);
  const [tarball, nodes] = await Promise.all([
    given ? resolve(given) : step('npm pack', () => pack(folder)),
    step('builds of Node', () => nodeBuilds(join(folder, 'nodes'))),
  ]);
  await inParallel(APPS, (app) =>
    step(`npm install: ${app.title}`, () => installApp(app, join(folder, app.title.replaceAll(' ', '-')), tarball)),
  );

  const env = { TEST_REDIS: JSON.stringify(redis.connection), NODE_OPTIONS: '' };
  const rows = await Promise.all(APPS.flatMap((app) => app.programs.map((program) => rowOf(app, program))));
  const runs = rows.flatMap((row) => nodes.map((node, column) => ({ row, node, column })));
  const failures = [];
  await inParallel(runs, async ({ row, node, column }) => {
    row.results[column] = await outcome(row, node, env).catch((error) => {
      failures.push(`FAILED  ${row.app}: ${row.title}, Node ${node.version}\n${error.message}`);
      return 'FAILED';
    });
  });

  printTable(rows, nodes);
  const missing = nodes.filter(({ command }) => !command);
  if (missing.length) {
    failures.push(
      `NOT RUN on Node ${missing.map(({ major }) => major).join(' and ')}: there are builds for Linux on x64 only, and this is another platform.`,
    );
  }
  if (failures.length) throw new Error(`\n${failures.join('\n\n')}`);
});

async function installApp(app, folder, tarball) {
  app.folder = folder;
  await createApp(folder, [tarball, ...toInstall(app.packages)]);
  for (const type of ['esm', 'cjs']) {
    const runners = join(folder, type, 'runners');
    await cp(join(runners, 'tsconfig.starter.json'), join(runners, 'tsconfig.json'));
    // A library that npm could not give the same installation as the app.
    await cp(join(folder, 'node_modules', name), join(folder, type, 'second/node_modules', name), { recursive: true });
  }
}

async function rowOf({ title, named, folder }, program) {
  const versions = await Promise.all(named.map(async (wanted) => `${wanted} ${await installedVersion(folder, wanted)}`));
  const runner = program.package ? ` (${program.package} ${await installedVersion(folder, program.package)})` : '';
  return { app: `${title} (${versions.join(', ')})`, title: program.title + runner, folder, program, results: [] };
}

async function outcome({ folder, program }, { major, command }, env) {
  if (!command) return 'NOT RUN';
  const { file, args = [], cwd = '.', modules = false, since = 0 } = program;
  if (major < since) return `from ${since} on`;
  const start = performance.now();
  await run(command, [...(modules ? ['--experimental-vm-modules'] : []), join(folder, file), ...args], join(folder, cwd), env);
  return `ok ${((performance.now() - start) / 1000).toFixed(1)} s`;
}

async function inParallel(items, work) {
  const waiting = [...items];
  const worker = async () => {
    for (let item = waiting.shift(); item; item = waiting.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
}
