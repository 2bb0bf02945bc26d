// What the benchmarks share: both sides of a comparison are measured in the same run, in interleaved rounds.
import { median } from './statistics.mjs';

export const ROUNDS = 9;

/** The measurements of each workload, by its name: one for each round, after one that does not count. */
export async function rounds(workloads, measure, count = ROUNDS) {
  const results = Object.fromEntries(Object.keys(workloads).map((name) => [name, []]));
  for (const [name, work] of Object.entries(workloads)) await measure(work, name);
  for (let round = 0; round < count; round++) {
    const order = Object.entries(workloads);
    if (round % 2) order.reverse();
    for (const [name, work] of order) results[name].push(await measure(work, name));
  }
  return results;
}

/** The median of the milliseconds of a pair of acquire and release. */
export async function timeOfPair(pair, count, warmUp = 0) {
  const times = [];
  for (let i = -warmUp; i < count; i++) {
    const start = performance.now();
    await pair();
    if (i >= 0) times.push(performance.now() - start);
  }
  return median(times);
}

/**
 * Prints the median of each, and with a `base` how many times as much as that one it was in the same round.
 *
 * @param {object} [options]
 * @param {Record<string, string>} [options.goals] what to print behind a name
 */
export function printRounds(title, results, digits, { base, goals = {} } = {}) {
  console.log(title);
  for (const [name, values] of Object.entries(results)) {
    const ratios = base && name !== base ? values.map((value, round) => value / results[base][round]) : [];
    const all = ratios.map((ratio) => ratio.toFixed(2)).join(' ');
    const ratio = ratios.length > 0 ? `, ÷ ${base} ${median(ratios).toFixed(2)} (rounds: ${all})` : '';
    const shown = values.includes(Infinity) ? 'given up' : median(values).toFixed(digits);
    console.log(`  ${name.padEnd(14)} ${shown}${ratio}${goals[name] ? `; goal: ${goals[name]}` : ''}`);
  }
}
