import { rounds } from './rounds.mjs';
import { median, quantile } from './statistics.mjs';

const PAIRS = 400;
/** Milliseconds for which all callers are busy. */
const SPAN = 1000;
export const CALLERS = 256;
export const CONNECTIONS = 4;

/**
 * Prints pairs of locks next to two bare UPDATEs, alone and by many callers.
 *
 * @param {string} database
 * @param {import('nestjs-distributed-lock/core').Locks} locks
 * @param {(key: string) => Promise<unknown>} update a commit on a row of this key
 * @param {{ lone: string, many: string }} goals
 */
export async function besideBare(database, locks, update, goals) {
  let fresh = 0;
  const work = {
    bare: async (caller) => {
      for (let i = 0; i < 2; i++) await update(`key ${caller}`);
    },
    ours: async (caller) => (await locks.acquire(`key ${caller}`)).release(),
    'ours, new keys': async () => (await locks.acquire(`new ${++fresh}`)).release(),
  };
  report(`${database}, a lone acquire and release, p50 in ms`, 3, await rounds(work, loneCaller), goals.lone);
  const title = `${database}, ${CALLERS} callers of keys of their own, pairs/s over ${CONNECTIONS} connections`;
  report(title, 0, await rounds(work, manyCallers, 5), goals.many);
}

/** The median of the milliseconds of a pair. */
async function loneCaller(pair) {
  const times = [];
  for (let i = 0; i < PAIRS; i++) {
    const start = performance.now();
    await pair(0);
    times.push(performance.now() - start);
  }
  return quantile(times, 0.5);
}

/** Pairs in a second of callers that each have a key. */
async function manyCallers(pair) {
  let pairs = 0;
  const start = performance.now();
  const end = start + SPAN;
  const caller = async (n) => {
    for (; performance.now() < end; pairs++) await pair(n);
  };
  await Promise.all(Array.from({ length: CALLERS }, (_, n) => caller(n)));
  return (pairs * 1000) / (performance.now() - start);
}

function report(title, digits, results, goal) {
  console.log(title);
  for (const [name, values] of Object.entries(results)) {
    const ratios = values.map((value, round) => value / results.bare[round]);
    const all = ratios.map((ratio) => ratio.toFixed(2)).join(' ');
    const ratio = name === 'bare' ? '' : `, ÷ bare ${median(ratios).toFixed(2)} (rounds: ${all})${name === 'ours' ? goal : ''}`;
    console.log(`  ${name.padEnd(14)} ${median(values).toFixed(digits)}${ratio}`);
  }
}
