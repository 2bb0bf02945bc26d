// A crowd on one key in one process.
import { crowd } from './crowd.mjs';

export const title = 'W3: 100 and 1,000 callers on one key';

export async function run(bench) {
  const many = (callers, rounds) =>
    crowd(bench, { id: `w3-${callers}`, callers, rounds, cap: bench.sized(6000, 3000), rivals: true, peersOnce: true });
  await bench.on('loopback', async () => {
    await many(100, bench.sized(5, 3));
    await many(1000, bench.sized(5, 3));
  });
  await bench.on('1 ms', () => many(100, bench.sized(2, 1)));
}
