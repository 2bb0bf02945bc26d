// 256 callers in one process, each on a key of its own: what the lock costs when nobody waits.
import { comparePairs } from './pairs.mjs';

const CALLERS = 256;

export const w2 = { title: 'W2: 256 callers on distinct keys', run };

async function run(bench) {
  await bench.on('loopback', async () => {
    await distinct(bench, bench.sized(5, 3));
    await distinct(bench, bench.sized(3, 2), true);
  });
  await bench.on('1 ms', () => distinct(bench, 1));
}

/** @param isNew whether each pair has a key that was never used before, as that of an order: its fence is made for it. */
function distinct(bench, rounds, isNew = false) {
  const what = isNew ? 'each pair on a new key' : 'a key each';
  const load = { callers: CALLERS, isNew };
  return comparePairs(bench, {
    id: isNew ? 'w2-new' : 'w2-distinct',
    title: `${CALLERS} callers, ${what}; the server on a core of its own`,
    rounds,
    peersOnce: true,
    columns: [{ key: 'perSecond', title: 'pairs/s' }],
    key: 'perSecond',
    chart: { key: 'perSecond', title: `${CALLERS} callers, ${what}: pairs of acquire + release`, unit: 'pairs/s', more: true },
    crew: { cores: 'apart' },
    // Two seconds, in which most of what runs is compiled.
    prepare: (crew) => crew.ask('distinct', { ...load, duration: 2000 }),
    slices: 10,
    slice: async (crew) => {
      const { answers, ...cost } = await bench.measured(crew, 'distinct', { ...load, duration: 200 });
      const [{ done, elapsed }] = answers;
      return { pairs: done, perSecond: (done / elapsed) * 1000, ...cost };
    },
  });
}
