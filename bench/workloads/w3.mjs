// A crowd on one key in one process.
import { crowd } from './crowd.mjs';

export const title = 'W3: 100 and 1,000 callers on one key';

export async function run(bench) {
  await bench.on('loopback', async () => {
    await crowd(bench, { id: 'w3-100', callers: 100, rounds: bench.sized(3, 1), cap: bench.sized(6000, 2000), rivals: true });
    await crowd(bench, { id: 'w3-1000', callers: 1000, rounds: bench.sized(3, 1), cap: bench.sized(6000, 2000), rivals: true });
  });
  await bench.on('1 ms', () =>
    crowd(bench, { id: 'w3-100', callers: 100, rounds: bench.sized(2, 1), cap: bench.sized(6000, 2000), rivals: true }),
  );
}
