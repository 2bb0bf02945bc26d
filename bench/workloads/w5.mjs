// 10,000 locks that one process holds more than three times as long as they live without renewal.
import { RAW } from '../contestants/lineup.mjs';
import { against } from '../measure/bench.mjs';
import { overlapping } from './columns.mjs';

const COUNT = 10_000;
const TTL = 3000;

export const w5 = { title: 'W5: 10,000 held locks', run };

async function run(bench) {
  await bench.on('loopback', () => held(bench, bench.sized(5, 3), bench.sized(10_000, 5000)));
}

const held = (bench, rounds, duration) =>
  bench.compare({
    id: 'w5-held',
    title: `${COUNT} locks of one process held ${duration / 1000} s, ttl ${TTL / 1000} s`,
    rounds,
    peersOnce: true,
    canTakePart: ({ renews }) => renews,
    columns: [
      { key: 'totalCpu', title: 'CPU ms, client + server' },
      { key: 'cpuRatio', title: '÷ raw', digits: 2 },
      { key: 'cpu', title: 'client' },
      { key: 'serverCpu', title: 'server' },
      { key: 'heapPerLock', title: 'heap bytes per lock' },
      { key: 'requests', title: 'requests' },
      { key: 'kept', title: `kept of ${COUNT}` },
      overlapping,
    ],
    chart: { key: 'totalCpu', title: `${COUNT} locks held ${duration / 1000} s: CPU of client and server`, unit: 'ms' },
    relate: [against(RAW, { cpuRatio: 'totalCpu' })],
    measure: (contestant) =>
      // The second process wants some of the held locks.
      bench.withCrew(contestant, { size: 2, callers: 50 }, async (crew) => {
        const { keys, heap } = await crew.one(0, 'hold', { count: COUNT, ttl: TTL });
        await bench.redis.reset();
        const cost = await bench.cost([await crew.one(0, 'rest', { duration })]);
        const kept = await bench.redis.existing(keys);
        const { entered } = await crew.one(1, 'lookAtHeld', { count: COUNT, some: 50, patience: 1000 });
        return { totalCpu: cost.cpu + cost.serverCpu, heapPerLock: heap / COUNT, ...cost, kept, overlaps: entered };
      }),
  });
