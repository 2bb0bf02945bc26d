// Locks in files next to what they must cost at least: a file that is created exclusively, and deleted.
//
//   npm run bench:file [-- --busy]
import { mkdtempSync, rmSync } from 'node:fs';
import { unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Locks } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';
import { refuseIfBusy } from './measure/busy.mjs';
import { rounds } from './measure/rounds.mjs';
import { median, quantile } from './measure/statistics.mjs';

const PAIRS = 1000;

await refuseIfBusy();
const directory = mkdtempSync(join(tmpdir(), 'bench-'));
const locks = new Locks(fileStore({ directory: join(directory, 'locks') }), { logger: false });
let fresh = 0;

async function bare() {
  const path = join(directory, 'bare.lock');
  await writeFile(path, 'owner', { flag: 'wx' });
  await unlink(path);
}
const ours = async () => (await locks.acquire('key')).release();
const news = async () => (await locks.acquire(`new ${++fresh}`)).release();

/** The median of the milliseconds of a pair. */
async function loneCaller(pair) {
  const times = [];
  for (let i = 0; i < PAIRS; i++) {
    const start = performance.now();
    await pair();
    times.push(performance.now() - start);
  }
  return quantile(times, 0.5);
}

const results = await rounds({ bare, ours, 'ours, new keys': news }, loneCaller);
console.log('Files, a lone acquire and release, p50 in ms');
for (const [name, values] of Object.entries(results)) {
  const ratio = median(values.map((value, round) => value / results.bare[round]));
  const goal = name === 'ours' ? '; goal: at most 0.5 ms' : '';
  console.log(`  ${name.padEnd(14)} ${median(values).toFixed(3)}${name === 'bare' ? '' : `, ÷ bare ${ratio.toFixed(2)}`}${goal}`);
}

await locks.close();
rmSync(directory, { recursive: true });
