// `ndl run` where leases end by the clock.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ndlHere } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { random } from '../support/random.js';
import { startRedis } from '../support/redis-server.js';
import { startProxy } from '../support/tcp-proxy.js';
import { documentIn } from './setting.js';
import { inside, sh, useWrappers } from './wrappers.js';

const KILLS = 9;
const LANES = 3;

const { redis, start, on, folderOf, textOf, begins, commands } = useWrappers();

it('a store that is gone: the command has ended before its lease has', async () => {
  const proxy = await startProxy(redis.server.connection);
  const url = redis.url.replace(/\d+$/, String(proxy.port));
  const args = ['run', 'k', '--url', url, '--timeout', '2s', '--key-timeout', '30s', '--grace', '12s'];
  const program = start([...args, '--', 'sh', inside, folderOf(), '600']);
  await begins();
  proxy.blackhole();
  await eventually(() => commands().length === 0);
  // By the clock of the store.
  expect(await redis.server.client().exists('k')).toBe(1);
  const { code, stderr } = await program.ended;
  expect([code, stderr]).toEqual([76, expect.stringContaining('could not be renewed, and ends in ')]);
  await proxy.close();
});

it('the exit code is that of the command if the store is gone at its end', async () => {
  const server = await startRedis({ port: 'free' });
  const script = 'echo runs; while ! [ -e "$1/go" ]; do sleep 0.1; done; exit 9';
  const program = start(['run', 'k', '--url', `redis://127.0.0.1:${server.port}`, '--timeout', '1s', ...sh(script, folderOf())]);
  await program.says(/runs/);
  await server.stop();
  writeFileSync(join(folderOf(), 'go'), '');
  expect((await program.ended).code).toBe(9);
});

it('taken at once by another process: the command is ended within a renewal', async () => {
  const program = start(on('--key-timeout', '6s', '--grace', '300ms', '--', 'sh', inside, folderOf(), '600'));
  await begins();
  const owner = await redis.server.client().get('k');
  const release = ['release', 'k', '--owner', owner!, '--reason', 'test', '--yes', '--json', '--now', '--keep', '10m', '--url', redis.url];
  expect(documentIn((await ndlHere(release)).stdout, 'release').outcome).toBe('forced');
  expect((await program.ended).code).toBe(76);
  expect(commands()).toEqual([]);
});

it.each([1, 2, 3, 4, 5])('a wrapper that is killed at any moment leaves no command behind, round %d', async () => {
  const client = redis.server.client();
  const lane = async (number: number): Promise<void> => {
    mkdirSync(join(folderOf(), String(number)));
    for (let i = 0; i < KILLS / LANES; i++) {
      const stubborn = random() < 0.5 ? ['stubborn'] : [];
      const args = ['run', `lane-${number}`, '--url', redis.url, '--key-timeout', '1s', '--grace', '300ms'];
      const known = textOf(`${number}/pids`);
      const program = start([...args, '--', 'sh', inside, join(folderOf(), String(number)), '600', ...stubborn]);
      let hasEnded = false;
      void program.ended.then(() => (hasEnded = true));
      // Half of them near the start of the command, where the steps are close together. Its lease of a second may be over before a busy machine starts one.
      const isNear = random() < 0.5;
      if (isNear) await eventually(() => hasEnded || textOf(`${number}/pids`) !== known, { every: 1 });
      for (let answers = random() * (isNear ? 1_000 : 10_000); answers > 0; answers--) await client.ping();
      program.signal('SIGKILL');
      await program.ended;
    }
  };
  const lanes = Array.from({ length: LANES }, (_, number) => number);
  await Promise.all(lanes.map(lane));
  await eventually(() => expect(commands()).toEqual([]));
  expect(lanes.map((number) => textOf(`${number}/overlaps`)).join('')).toBe('');
  expect(lanes.map((number) => textOf(`${number}/pids`)).join('')).not.toBe('');
});
