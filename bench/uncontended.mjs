// A lone caller on a free key: acquire + release next to raw ioredis SET NX PX + compare-and-delete by EVALSHA, and a decorated call next to
// a bare one. Both sides of each ratio are measured in the same run, in interleaved rounds.
//
//   npm run bench            (uses a private redis-server, or REDIS_URL)
import 'reflect-metadata';
import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { DistributedLock, DistributedLockModule } from 'nestjs-distributed-lock';
import { Locks } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { ensureService } from '../scripts/services.mjs';

const ROUNDS = 9;
const PAIRS = 2_000;
const CALLS = 20_000;

const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;
const RELEASE_SHA = createHash('sha1').update(RELEASE).digest('hex');

function quantile(samples, q) {
  const sorted = Float64Array.from(samples).sort();
  return sorted[Math.floor(q * (sorted.length - 1))];
}

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

/** Mean microseconds of a call: one is too short for the clock. */
async function timeMean(count, work) {
  const start = performance.now();
  for (let i = 0; i < count; i++) await work();
  return ((performance.now() - start) * 1000) / count;
}

async function rounds(workloads, measure) {
  const results = Object.fromEntries(Object.keys(workloads).map((name) => [name, []]));
  for (const work of Object.values(workloads)) await measure(work);
  for (let round = 0; round < ROUNDS; round++) {
    const order = Object.entries(workloads);
    if (round % 2) order.reverse();
    for (const [name, work] of order) results[name].push(await measure(work));
  }
  return results;
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

async function decoratorBench() {
  class Service {
    async bare() {}
    async locked() {}
  }
  const descriptor = Object.getOwnPropertyDescriptor(Service.prototype, 'locked');
  DistributedLock({ value: 'bench', keyTimeout: 10_000 })(Service.prototype, 'locked', descriptor);
  Object.defineProperty(Service.prototype, 'locked', descriptor);
  Injectable()(Service);
  class App {}
  Module({ imports: [DistributedLockModule.forRoot({ store: memoryStore() })], providers: [Service] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  const service = app.get(Service);
  const results = await rounds({ bare: () => service.bare(), locked: () => service.locked() }, (work) => timeMean(CALLS, work));
  await app.close();
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

const decorator = await decoratorBench();
const over = decorator.locked.map((time, round) => time - decorator.bare[round]);
console.log(`decorated over bare call on the memory store, ${ROUNDS} rounds of ${CALLS}`);
console.log(`  ${quantile(over, 0.5).toFixed(2)} µs (rounds: ${over.map((time) => time.toFixed(1)).join(' ')}); goal 8`);
