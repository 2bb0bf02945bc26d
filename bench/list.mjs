// `locks.list()` among many other keys: how long it takes, what it costs the server, and a lone caller meanwhile.
//
//   npm run bench:list [-- <other keys> <held keys>]
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { startRedis } from './measure/redis.mjs';

const numbers = process.argv.slice(2).filter((text) => /^\d+$/.test(text));
const [others = 10_000_000, held = 10_000] = numbers.map(Number);
const AT_ONCE = 100_000;
/** Microseconds. */
const SLOW = 5_000;
const FILL = `for i = ARGV[1], ARGV[2] do redis.call('SET', 'other:' .. string.format('%.0f', i), i) end`;

const server = await startRedis();
const { client: redis, port } = server;

const percentiles = (times) => [0.5, 0.99].map((part) => Math.round(times[Math.floor(times.length * part)])).join(' and ');

for (let i = 0; i < others; i += AT_ONCE) await redis.eval(FILL, 0, i, Math.min(i + AT_ONCE, others) - 1);
const [holder, operator] = [0, 1].map(() => new Locks(redisStore({ url: `redis://127.0.0.1:${port}` }), { logger: false }));
await Promise.all(Array.from({ length: held }, (_, n) => holder.acquire(`held:${n}`, { keyTimeout: 600_000 })));
const lone = new Worker(new URL('./measure/lone-caller.mjs', import.meta.url), { workerData: { port } });
/** Microseconds of each acquire and release since it was asked last, sorted. */
async function timesOfPairs() {
  lone.postMessage('times');
  const [times] = await once(lone, 'message');
  return times.sort((a, b) => a - b);
}
await pause(2_000);
await timesOfPairs();
await pause(5_000);
const alone = await timesOfPairs();
await redis.config('SET', 'slowlog-log-slower-than', SLOW);
await redis.slowlog('RESET');
await redis.config('RESETSTAT');
await timesOfPairs();

const start = performance.now();
let found = 0;
for await (const { key } of operator.list({ limit: 1_000_000 })) if (key.startsWith('held:')) found++;
const took = performance.now() - start;
const meanwhile = await timesOfPairs();

const [, calls, , each] = /cmdstat_scan:calls=(\d+),usec=(\d+),usec_per_call=([\d.]+)/.exec(await redis.info('commandstats'));
console.log(`${found} of ${held} held keys found among ${others} others in ${(took / 1000).toFixed(1)} s`);
console.log(`${calls} calls of SCAN, ${each} µs each; ${await redis.slowlog('LEN')} calls took more than ${SLOW / 1000} ms`);
console.log(`acquire + release of a lone caller, µs, median and 99 %: ${percentiles(alone)} alone, ${percentiles(meanwhile)} meanwhile`);
await lone.terminate();
await Promise.all([holder, operator].map((locks) => locks.close()));
server.stop();
