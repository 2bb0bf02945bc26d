// What the benchmarks share: both sides of a comparison are measured in the same run, in interleaved rounds.

export const ROUNDS = 9;

/** The measurements of each workload, by its name: one for each round, after one that does not count. */
export async function rounds(workloads, measure, count = ROUNDS) {
  const results = Object.fromEntries(Object.keys(workloads).map((name) => [name, []]));
  for (const work of Object.values(workloads)) await measure(work);
  for (let round = 0; round < count; round++) {
    const order = Object.entries(workloads);
    if (round % 2) order.reverse();
    for (const [name, work] of order) results[name].push(await measure(work));
  }
  return results;
}
