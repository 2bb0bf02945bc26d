// 256 callers in one process, each on a key of its own: what the lock costs when nobody waits.
import { againstRaw, probed } from '../measure/bench.mjs';
import { overlapping } from './columns.mjs';

export const title = 'W2: 256 callers on distinct keys';

const CALLERS = 256;
/** Milliseconds in which most of what runs is compiled. */
const WARM_UP = 2000;

export async function run(bench) {
  await bench.on('loopback', () => distinct(bench, bench.sized(5, 1)));
  await bench.on('1 ms', () => distinct(bench, 1));
}

const distinct = (bench, rounds) =>
  bench.compare({
    id: 'w2-distinct',
    title: `${CALLERS} callers, a key each`,
    rounds,
    columns: [
      { key: 'perSecond', title: 'pairs/s' },
      { key: 'ratio', title: '÷ raw', digits: 2 },
      { key: 'cpuPerPair', title: 'CPU µs per pair', digits: 1 },
      { key: 'serverCpuPerPair', title: 'server CPU µs per pair', digits: 1 },
      { key: 'requestsPerPair', title: 'requests per pair', digits: 2 },
      overlapping,
    ],
    chart: { key: 'perSecond', title: '256 callers, a key each: pairs of acquire + release', unit: 'pairs/s', more: true },
    relate: againstRaw('perSecond', 'ratio'),
    measure: (contestant) =>
      bench.withCrew(contestant, { apart: true }, async (crew) => {
        await crew.ask('distinct', { callers: CALLERS, duration: bench.sized(WARM_UP, 300) });
        const { answers, ...cost } = await bench.measured(crew, 'distinct', { callers: CALLERS, duration: bench.sized(1000, 500) });
        const [{ done, elapsed }] = answers;
        return {
          perSecond: (done / elapsed) * 1000,
          cpuPerPair: (cost.cpu / done) * 1000,
          serverCpuPerPair: (cost.serverCpu / done) * 1000,
          requestsPerPair: cost.requests / done,
          ...cost,
          overlaps: await probed(crew),
        };
      }),
  });
