// 256 callers in one process, each on a key of its own: what the lock costs when nobody waits.
import { comparePairs } from './pairs.mjs';

const CALLERS = 256;

export const w2 = { title: 'W2: 256 callers on distinct keys', run };

async function run(bench) {
  await bench.on('loopback', () => distinct(bench, bench.sized(5, 3)));
  await bench.on('1 ms', () => distinct(bench, 1));
}

const distinct = (bench, rounds) =>
  comparePairs(bench, {
    id: 'w2-distinct',
    title: `${CALLERS} callers, a key each; the server on a core of its own`,
    rounds,
    peersOnce: true,
    columns: [{ key: 'perSecond', title: 'pairs/s' }],
    key: 'perSecond',
    chart: { key: 'perSecond', title: '256 callers, a key each: pairs of acquire + release', unit: 'pairs/s', more: true },
    crew: { cores: 'apart' },
    // Two seconds, in which most of what runs is compiled.
    prepare: (crew) => crew.ask('distinct', { callers: CALLERS, duration: 2000 }),
    slices: 10,
    slice: async (crew) => {
      const { answers, ...cost } = await bench.measured(crew, 'distinct', { callers: CALLERS, duration: 200 });
      const [{ done, elapsed }] = answers;
      return { pairs: done, perSecond: (done / elapsed) * 1000, ...cost };
    },
  });
