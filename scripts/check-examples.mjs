// Installs the examples with the packed library, and runs two instances of each. They use the Redis at REDIS_URL, else a private one.
import assert from 'node:assert/strict';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../test/support/eventually.ts';
import { startRedis } from '../test/support/redis-server.ts';
import { inTemporaryFolder, install, name, pack, root, run, start, step } from './packed.mjs';

const CHECKS = {
  async 'quick-start'(open) {
    const urls = await Promise.all([open(), open()].map((shop) => says(shop, /open at (\S+)/)));
    await fetch(`${urls[0]}/stock/apple`, { method: 'PUT', body: '{"units":20}', headers: { 'content-type': 'application/json' } });
    const buy = (_, index) => fetch(`${urls[index % 2]}/stock/apple/buy`, { method: 'POST' });
    const answers = await Promise.all(Array.from({ length: 30 }, buy));
    const left = await Promise.all(answers.filter(({ ok }) => ok).map(async (answer) => (await answer.json()).left));
    left.sort((a, b) => a - b);
    assert.deepEqual(left, [...Array(20).keys()], 'each of the apples must be sold once');
    assert.equal(answers.filter(({ status }) => status === 409).length, 10);
  },

  async cron(open) {
    const instances = [open(), open()];
    const ticks = () => instances.flatMap(({ output }) => [...output.matchAll(/report of (\S+)/g)].map(([, time]) => Date.parse(time)));
    await eventually(() => ticks().length >= 4, { within: 30_000 });
    const numbers = ticks().map((time) => Math.round(time / 2_000));
    assert.deepEqual(numbers, [...new Set(numbers)], 'one tick ran twice');
  },

  async leader(open) {
    const instances = [open(), open()];
    const polled = /Polled in term (\d+)/;
    const term = await Promise.any(instances.map((instance) => says(instance, polled)));
    const [[leader], [standby]] = [true, false].map((leads) => instances.filter(({ output }) => polled.test(output) === leads));
    leader.child.kill('SIGKILL');
    assert.ok(Number(await says(standby, polled)) > Number(term));
  },

  async bullmq(open) {
    await Promise.all([open(), open()].map((worker) => says(worker, /(initialized)/)));
    assert.equal(await says(open('dist/pay.js'), /(.*has.*)/), 'alice has 15, bob has 15');
  },
};

await inTemporaryFolder('examples', async (folder, startServer) => {
  const tarball = await step('npm pack', () => pack(folder));
  const startPrivate = () => startServer('a private redis-server', () => startRedis({ port: 'free' }));
  const redisUrl = process.env.REDIS_URL || `redis://127.0.0.1:${(await startPrivate()).port}`;
  const examples = join(folder, 'examples');
  await cp(join(root, 'examples'), examples, { recursive: true, filter: (path) => !/[\\/](node_modules|dist)$/.test(path) });
  await writeFile(join(examples, 'package.json'), JSON.stringify({ private: true, workspaces: Object.keys(CHECKS) }));
  for (const example of Object.keys(CHECKS)) await useTarball(join(examples, example, 'package.json'), tarball);
  await step('npm install', () => install(examples, []));

  for (const [example, check] of Object.entries(CHECKS)) {
    const home = join(examples, example);
    const instances = [];
    const open = (program = 'dist/main.js') => {
      instances.push(start(process.execPath, [program], home, { REDIS_URL: redisUrl, PORT: '0', NO_COLOR: '1' }));
      return instances.at(-1);
    };
    await step(`${example}: npm run build`, () => run('npm', ['run', 'build'], home));
    await step(`${example}: two instances`, () => check(open));
    for (const { child, ended } of instances) await (child.kill(), ended);
  }
});

async function useTarball(file, tarball) {
  const manifest = JSON.parse(await readFile(file, 'utf8'));
  await writeFile(file, JSON.stringify({ ...manifest, dependencies: { ...manifest.dependencies, [name]: `file:${tarball}` } }));
}

/** Resolves with the group of the pattern in what an instance has written. */
function says(instance, pattern) {
  const text = () => pattern.exec(instance.output)?.[1] ?? assert.fail(`${pattern} is not in:\n${instance.output}`);
  return eventually(text, { within: 30_000 });
}
