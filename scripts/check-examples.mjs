// Installs the examples and the sample app with the packed library, and runs two instances of each: `npm run nightly -- examples cron leader`, or all. They use
// the Redis at REDIS_URL, else a private one, and a private Postgres.
import { Redis } from 'ioredis';
import assert from 'node:assert/strict';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { eventually } from '../test/support/eventually.ts';
import { startPostgres } from '../test/support/postgres-server.ts';
import { startRedis } from '../test/support/redis-server.ts';
import { inTemporaryFolder, install, name, pack, positionals, root, run, start, step } from './packed.mjs';

const CHECKS = {
  async 'quick-start'(open) {
    const urls = await Promise.all([open(), open()].map((shop) => says(shop, /open at (\S+)/)));
    await send('PUT', `${urls[0]}/stock/apple`, { units: 20 });
    const answers = await Promise.all(Array.from({ length: 30 }, (_, index) => send('POST', `${urls[index % 2]}/stock/apple/buy`)));
    const left = await Promise.all(answers.filter(({ ok }) => ok).map(async (answer) => (await answer.json()).left));
    left.sort((a, b) => a - b);
    assert.deepEqual(left, [...Array(20).keys()], 'each of the apples must be sold once');
    assert.equal(answers.filter(({ status }) => status === 409).length, 10);
  },

  async cron(open) {
    const instances = [open(), open()];
    const ticks = () => instances.flatMap(({ output }) => [...output.matchAll(/report of (\S+)/g)].map(([, time]) => Date.parse(time)));
    await eventually(() => ticks().length >= 4, { within: 60_000 });
    const numbers = ticks().map((time) => Math.round(time / 2_000));
    assert.deepEqual(numbers, [...new Set(numbers)], 'one tick ran twice');
  },

  async leader(open) {
    const shown = open({}, 'take-over.js');
    await shown.ended;
    const [, killed, first, leads, second] = /Kills (\d+) in term (\d+)[^]*\n(\d+) leads in term (\d+)/.exec(shown.output);
    assert.notEqual(leads, killed);
    assert.ok(Number(second) > Number(first), shown.output);
  },

  async bullmq(open) {
    await Promise.all([open(), open()].map((worker) => says(worker, /(initialized)/)));
    assert.equal(await says(open({}, 'pay.js'), /(.*has.*)/), 'alice has 15, bob has 15');
  },

  async 'fence-guard'(open) {
    const [paused, other] = [open({ PACK_MS: '10000' }), open()];
    const [first, second] = await Promise.all([paused, other].map(async (shop) => `${await says(shop, /open at (\S+)/)}/stock/apple/buy`));
    const late = send('POST', first);
    await says(paused, /(Packs)/);
    paused.child.kill('SIGSTOP');
    assert.deepEqual(await (await send('POST', second)).json(), { left: 19 }, 'the lock of a paused holder must expire');
    paused.child.kill('SIGCONT');
    assert.equal((await late).ok, false, 'a holder that has lost its lock must be refused');
    assert.deepEqual(await (await send('POST', second)).json(), { left: 18 });
  },

  async 'unit-test'(_open, home, env) {
    assert.match(await run('npm', ['run', 'test:jest'], home, env), /Tests:\s+1 passed/);
    assert.match(await run('npm', ['run', 'test:vitest'], home, env), /Tests\s+1 passed/);
  },

  async migration(open, home, env) {
    // `npm run migrate` would compile beside the instances that start.
    const command = start('npx', ['ndl', 'run', 'db-migrate', '--wait', '10m', '--', 'node', 'dist/run.js'], home, env);
    const instances = [open(), open()];
    await Promise.all([...instances.map((app) => says(app, /(is open)/)), command.ended]);
    const outputs = [command, ...instances].map(({ output }) => /(Has migrated|Nothing to migrate)/.exec(output)?.[0]).sort();
    assert.deepEqual(outputs, ['Has migrated', 'Nothing to migrate', 'Nothing to migrate'], command.output);
  },

  async 'payment-webhook'(open) {
    const instances = [open(), open(), open({ VERIFY_MS: '10000' })];
    const urls = await Promise.all(instances.map((app) => says(app, /open at (\S+)/)));
    const deliver = async (url, id) => {
      const answer = await send('POST', `${url}/webhook`, { id, account: 'alice', amount: 10 });
      return answer.ok ? (await answer.json()).booked : deliver(url, id); // as the provider does
    };
    const booked = await Promise.all(Array.from({ length: 20 }, (_, index) => deliver(urls[index % 2], `event-${index % 5}`)));
    assert.equal(booked.filter(Boolean).length, 5, 'each event must be booked once');
    assert.equal(instances.flatMap(({ output }) => output.match(/Verifies/g) ?? []).length, 5, 'each event must be verified once');

    const late = send('POST', `${urls[2]}/webhook`, { id: 'late', account: 'alice', amount: 10 });
    await says(instances[2], /(Verifies late)/);
    instances[2].child.kill('SIGSTOP');
    assert.equal(await deliver(urls[0], 'late'), true, 'the lock of a paused holder must expire');
    instances[2].child.kill('SIGCONT');
    await late;
    assert.deepEqual(
      await (await fetch(`${urls[1]}/balance/alice`)).json(),
      { balance: 60 },
      'a paused holder must not book a second time',
    );
  },

  async 'cache-stampede'(open, _home, { REDIS_URL }) {
    const redis = new Redis(REDIS_URL);
    await redis.del('report');
    const instances = [open(), open()];
    const urls = await Promise.all(instances.map((app) => says(app, /report is at (\S+)/)));
    const ask = () => Promise.all(Array.from({ length: 40 }, async (_, index) => (await (await fetch(urls[index % 2])).json()).madeAt));
    const computed = () => instances.flatMap(({ output }) => output.match(/Computes/g) ?? []).length;
    const [first, ...others] = new Set(await ask());
    assert.deepEqual([others, computed()], [[], 1], 'callers of an empty cache must wait for the one that computes');
    await redis.set('report', JSON.stringify({ madeAt: first, freshUntil: 0 }));
    const answers = await ask();
    assert.equal(computed(), 2, 'of the callers of an old report one must compute');
    assert.equal(new Set([first, ...answers]).size, 2);
    assert.ok(answers.includes(first), 'callers must take the old report meanwhile');
    await redis.quit();
  },

  async 'sample-app'(open, _home, { DATABASE_URL }) {
    const urls = await Promise.all([open, open].map((one) => says(one({ STORE_URL: DATABASE_URL }), /open at (\S+)/)));
    await send('PUT', `${urls[0]}/stock/apple`, { units: 20 });
    const answers = await Promise.all(Array.from({ length: 30 }, (_, index) => send('POST', `${urls[index % 2]}/reduceStock`)));
    const receipts = await Promise.all(answers.map((answer) => answer.json()));
    assert.equal(receipts.filter(({ sold }) => sold).length, 20);
    assert.equal((await fetch(`${urls[1]}/health/ready`)).status, 200);
  },
};

await inTemporaryFolder('examples', async (folder, startServer) => {
  const tarball = await step('npm pack', () => pack(folder));
  const startPrivate = () => startServer('a private redis-server', () => startRedis({ port: 'free' }));
  const redisUrl = process.env.REDIS_URL || `redis://127.0.0.1:${(await startPrivate()).port}`;
  const postgres = await startServer('a private Postgres', () => startPostgres({ port: 'free' }));
  const examples = join(folder, 'examples');
  const filter = (path) => !/[\\/](node_modules|dist)$/.test(path);
  await cp(join(root, 'examples'), examples, { recursive: true, filter });
  await cp(join(root, 'sample-app'), join(examples, 'sample-app'), { recursive: true, filter });
  const names = positionals.length > 0 ? positionals : Object.keys(CHECKS);
  await writeFile(join(examples, 'package.json'), JSON.stringify({ private: true, workspaces: names }));
  for (const example of names) await useTarball(join(examples, example, 'package.json'), tarball);
  await step('npm install', () => install(examples, []));
  await step('tsc', () => run('npx', ['tsc', '-b', ...names], examples));

  // Most of a check is waiting.
  const queue = names.values();
  const checkNext = async () => {
    for (const example of queue) {
      const home = join(examples, example);
      const env = { REDIS_URL: redisUrl, DATABASE_URL: await createDatabase(postgres, example), PORT: '0', NO_COLOR: '1' };
      const instances = [];
      const open = (more, program = 'main.js') => {
        instances.push(start(process.execPath, [`dist/${program}`], home, { ...env, ...more }));
        return instances.at(-1);
      };
      await step(example, () => CHECKS[example](open, home, env));
      for (const { child, ended } of instances) await (child.kill(), ended);
    }
  };
  await Promise.all([checkNext(), checkNext(), checkNext()]);
});

/** Resolves with the URL of a database of its own. */
async function createDatabase({ connection, url }, name) {
  const client = new pg.Client(connection);
  await client.connect();
  await client.query(`CREATE DATABASE "${name}"`);
  await client.end();
  return url.replace(/postgres$/, name);
}

function send(method, url, body) {
  return fetch(url, { method, body: JSON.stringify(body), headers: body && { 'content-type': 'application/json' } });
}

async function useTarball(file, tarball) {
  const manifest = JSON.parse(await readFile(file, 'utf8'));
  await writeFile(file, JSON.stringify({ ...manifest, dependencies: { ...manifest.dependencies, [name]: `file:${tarball}` } }));
}

/** Resolves with the group of the pattern in what an instance has written. */
function says(instance, pattern) {
  const text = () => pattern.exec(instance.output)?.[1] ?? assert.fail(`${pattern} is not in:\n${instance.output}`);
  return eventually(text, { within: 60_000 });
}
