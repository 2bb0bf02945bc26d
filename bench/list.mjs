// `locks.list()` among many other keys: how long it takes, what it costs the server, and a lone caller meanwhile.
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { begin } from './measure/begin.mjs';
import { startRedis } from './measure/redis.mjs';
import { quantile } from './measure/statistics.mjs';

const USAGE = `list [options]
  --others <n>   keys that are no locks; default: 10,000,000
  --held <n>     keys that are held; default: 10,000`;
const { others, held } = await begin(USAGE, { numbers: { others: 10_000_000, held: 10_000 } });
const AT_ONCE = 100_000;
/** Microseconds. */
const SLOW = 5_000;
const FILL = `for i = ARGV[1], ARGV[2] do redis.call('SET', 'other:' .. string.format('%.0f', i), i) end`;

const server = await startRedis();
const { client: redis, port, url } = server;

const percentiles = (times) => [0.5, 0.99].map((part) => Math.round(quantile(times, part))).join(' and ');

for (let i = 0; i < others; i += AT_ONCE) await redis.eval(FILL, 0, i, Math.min(i + AT_ONCE, others) - 1);
const [holder, operator] = [0, 1].map(() => new Locks(redisStore({ url }), { logger: false }));
await Promise.all(Array.from({ length: held }, (_, n) => holder.acquire(`held:${n}`, { keyTimeout: 600_000 })));
const lone = new Worker(new URL('./measure/lone-caller.mjs', import.meta.url), { workerData: { port } });
/** Microseconds of each acquire and release since it was asked last. */
async function timesOfPairs() {
  lone.postMessage('times');
  return (await once(lone, 'message'))[0];
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
await server.stop();
