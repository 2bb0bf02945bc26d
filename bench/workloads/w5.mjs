// 10,000 locks that one process holds ten times as long as they live by themselves.
import { sum } from '../measure/statistics.mjs';
import { overlapping } from './columns.mjs';

export const title = 'W5: 10,000 held locks';

const TTL = 3000;

export async function run(bench) {
  await bench.on('loopback', () => held(bench, { count: bench.sized(10_000, 2000), duration: bench.sized(30_000, 4000) }));
}

const held = (bench, { count, duration }) =>
  bench.compare({
    id: 'w5-held',
    title: `${count} locks of one process held ${duration / 1000} s, ttl ${TTL / 1000} s`,
    rounds: 1,
    contestants: bench.contestants.filter(({ renews }) => renews),
    columns: [
      { key: 'requests', title: 'requests' },
      { key: 'calls', title: 'calls in the server' },
      { key: 'cpu', title: 'CPU ms' },
      { key: 'serverCpu', title: 'server CPU ms' },
      { key: 'kept', title: `kept of ${count}` },
      overlapping,
    ],
    chart: { key: 'requests', title: `${count} locks held ${duration / 1000} s: requests for their renewal`, unit: 'requests', log: true },
    // The second process is the stranger.
    measure: (contestant) =>
      bench.withCrew(contestant, { size: 2, callers: 50 }, async (crew) => {
        const { keys } = await crew.one(0, 'hold', { count, ttl: TTL });
        await bench.redis.reset();
        const cost = await bench.cost([await crew.one(0, 'rest', { duration })]);
        const kept = await bench.redis.existing(keys);
        const { entered } = await crew.one(1, 'lookAtHeld', { count, some: 50, patience: 1000 });
        return { ...cost, calls: sum(Object.values(cost.commands)), kept, overlaps: entered };
      }),
  });
