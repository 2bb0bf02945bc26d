// A lone caller on a free key: acquire + release next to raw ioredis SET NX PX + compare-and-delete by EVALSHA.
//
//   npm run bench            (uses a private redis-server, or REDIS_URL)
import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { ensureService } from '../scripts/services.mjs';
import { quantile, ROUNDS, rounds } from './rounds.mjs';

const PAIRS = 2_000;

const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;
const RELEASE_SHA = createHash('sha1').update(RELEASE).digest('hex');

/** Microseconds of each of `count` calls, one after the other. */
async function timeEach(count, work) {
  const times = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    await work();
    times[i] = (performance.now() - start) * 1000;
  }
  return times;
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

/** On TCP, as in production: on a unix socket the commands themselves weigh more. */
async function startRedis() {
  if (process.env.REDIS_URL) return { client: () => new Redis(process.env.REDIS_URL), stop: () => undefined };
  const service = await ensureService('redis-server');
  const folder = mkdtempSync(join(tmpdir(), 'bench-'));
  const port = await freePort();
  const args = ['--bind', '127.0.0.1', '--port', port, '--dir', folder, '--save', '', '--appendonly', 'no'];
  const server = spawn(service.command, args, { stdio: 'ignore' });
  const stop = () => {
    server.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', stop);
  return { client: () => new Redis(port, '127.0.0.1', { retryStrategy: () => 20 }).on('error', () => undefined), stop };
}

async function redisBench() {
  const redis = await startRedis();
  const raw = redis.client();
  const client = redis.client();
  await raw.script('LOAD', RELEASE);
  const locks = new Locks(redisStore({ client }), { logger: false });
  const results = await rounds(
    {
      raw: async () => {
        const owner = randomUUID();
        await raw.set('raw', owner, 'PX', 10_000, 'NX');
        await raw.evalsha(RELEASE_SHA, 1, 'raw', owner);
      },
      ours: async () => {
        const lease = await locks.acquire('ours', { keyTimeout: 10_000 });
        await lease.release();
      },
    },
    (work) => timeEach(PAIRS, work),
  );
  await locks.close();
  client.disconnect();
  raw.disconnect();
  redis.stop();
  return results;
}

const redis = await redisBench();
const p = (name, q) =>
  quantile(
    redis[name].map((times) => quantile(times, q)),
    0.5,
  );
const ratios = redis.ours.map((times, round) => quantile(times, 0.5) / quantile(redis.raw[round], 0.5));
console.log(`lone acquire + release on Redis, ${ROUNDS} rounds of ${PAIRS}, median of rounds`);
for (const name of ['raw', 'ours'])
  console.log(`  ${name.padEnd(5)} p50 ${p(name, 0.5).toFixed(1)} µs, p99 ${p(name, 0.99).toFixed(1)} µs`);
console.log(
  `  ratio of p50: ${quantile(ratios, 0.5).toFixed(3)} (rounds: ${ratios.map((ratio) => ratio.toFixed(2)).join(' ')}); goal 1.15`,
);
