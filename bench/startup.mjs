// What a thousand decorated methods add to the start of an app: the same app with and without the decorator, in fresh processes by turns.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { begin } from './measure/begin.mjs';
import { median } from './measure/statistics.mjs';
import { rounds } from './measure/rounds.mjs';

const ROUNDS = 15;
const program = fileURLToPath(new URL('startup/app.mjs', import.meta.url));

/** Resolves with what the app has measured of its own start. */
async function start(variant) {
  const child = spawn(process.execPath, [program, variant], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.on('data', (data) => (output += data));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`startup/app.mjs ${variant} ended with ${code}`);
  return JSON.parse(output);
}

await begin('startup [options]');
const variants = ['bare', 'module', 'locked'];
const results = await rounds(Object.fromEntries(variants.map((variant) => [variant, () => start(variant)])), (work) => work(), ROUNDS);

function report(title, measure) {
  const [wall, cpu] = ['wall', 'cpu'].map((clock) =>
    median(Array.from({ length: ROUNDS }, (_, round) => measure(round, clock))).toFixed(1),
  );
  console.log(`  ${title.padEnd(40)} ${wall.padStart(6)} ${cpu.padStart(6)}`);
}
const over = (variant, base, phase) => (round, clock) => results[variant][round][phase][clock] - results[base][round][phase][clock];

console.log(`start of an app with 100 providers of 10 methods, from its classes to the app, ${ROUNDS} rounds, medians`);
console.log('                                          clock    CPU (ms)');
report('without locks', (round, clock) => results.bare[round].total[clock]);
report('more with DistributedLockModule', over('module', 'bare', 'total'));
report('more with 1,000 methods decorated, too', over('locked', 'bare', 'total'));
report('  while the classes are defined', over('locked', 'bare', 'define'));
report('  while the app is created', over('locked', 'bare', 'boot'));
console.log('  goal: at most 40 ms more with 1,000 methods decorated');
