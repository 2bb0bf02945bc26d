// A million cycles over ten thousand keys, then half an hour of mixed load: nothing may grow. `npm run nightly -- soak --cycles 1000000 --keys 10000 --minutes 30`
import type { Redis } from 'ioredis';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Locks } from '../../lib/core.js';
import { redisStore } from '../../lib/stores/redis/redis.store.js';
import { startRedis } from '../support/redis-server.js';
import { KINDS, type Kind } from './history/entry.js';
import { startMixedLoad } from './soak/mixed.js';
import { takeSample, type Sample } from './soak/sample.js';
import { judgeSamples } from './soak/slope.js';

const CALLERS = 64;
const SAMPLES = 50;

if (!globalThis.gc) throw new Error('Run it by `npm run nightly -- soak`: it needs --expose-gc');
const { values: flags } = parseArgs({
  options: {
    cycles: { type: 'string', default: '1000000' },
    keys: { type: 'string', default: '10000' },
    minutes: { type: 'string', default: '30' },
    seed: { type: 'string', default: '1' },
    kind: { type: 'string', default: KINDS.join(',') },
  },
});
const server = await startRedis();
const resource = await startRedis();
const admin = server.client();
const all = [1, 2].map(() => new Locks(redisStore({ options: { ...server.connection } }), { logger: false }));
const used = (all[0]!.store.mutex.wakeUps as unknown as { redis: { client: Redis } }).redis.client;
const phases = [
  { title: `${flags.cycles} cycles`, samples: await cycles(Number(flags.cycles), Number(flags.keys)) },
  { title: `${flags.minutes} min mixed`, samples: await mixed(Number(flags.minutes) * 60) },
];
await Promise.all(all.map((locks) => locks.close()));
await Promise.all([server.stop(), resource.stop()]);

const verdicts = phases.flatMap(({ title, samples }) => judgeSamples(samples).map((verdict) => ({ title, ...verdict })));
console.table(verdicts.map(({ mean, growth, ...rest }) => ({ ...rest, mean: Number(mean.toFixed(2)), growth: Number(growth.toFixed(2)) })));
process.exit(verdicts.every(({ isFlat }) => isFlat) ? 0 : 1);

/** Takes and releases locks of so many keys one after the other, by several callers at a time. */
async function cycles(count: number, keys: number): Promise<Sample[]> {
  const samples: Sample[] = [];
  const start = performance.now();
  const each = Math.ceil(count / SAMPLES);
  for (let done = 0; done < count; done += each) {
    let next = done;
    const end = Math.min(count, done + each);
    const caller = async (_: unknown, i: number): Promise<void> => {
      while (next < end) await all[i % all.length]!.using(`cycle-${next++ % keys}`, () => undefined);
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
    samples.push(await takeSample((performance.now() - start) / 1_000, admin, used));
  }
  console.log(`${count} cycles in ${samples.at(-1)!.at.toFixed(0)} s`);
  return samples;
}

async function mixed(seconds: number): Promise<Sample[]> {
  const folder = mkdtempSync(join(tmpdir(), 'soak-'));
  const stop = startMixedLoad(flags.seed, flags.kind.split(',') as Kind[], folder, resource.client(), all);
  const samples: Sample[] = [];
  const start = performance.now();
  for (let i = 1; i <= SAMPLES; i++) {
    await new Promise((resolve) => setTimeout(resolve, start + (i * seconds * 1_000) / SAMPLES - performance.now()));
    samples.push(await takeSample((performance.now() - start) / 1_000, admin, used));
  }
  await stop();
  rmSync(folder, { recursive: true });
  return samples;
}
