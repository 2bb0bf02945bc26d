/** Of every randomized test: given by TEST_SEED, and printed. */
export const seed = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
let state = seed;
let isPrinted = false;

export function printedSeed(): number {
  if (!isPrinted) process.stderr.write(`TEST_SEED=${seed} ${expect.getState().testPath ?? ''}\n`);
  isPrinted = true;
  return seed;
}

/** As `Math.random`, of the seed (mulberry32). */
export function random(): number {
  printedSeed();
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
}
