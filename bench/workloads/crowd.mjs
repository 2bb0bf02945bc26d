// Many callers in one process come at once, and each wants one section of 1 ms on the one key.
import { overlapsOf, waitsOf } from '../measure/bench.mjs';
import { failing, overlapping, requestsPerSection } from './columns.mjs';

export const w3 = {
  title: 'W3: 100 and 1,000 callers on one key',
  async run(bench) {
    const many = (callers, rounds) =>
      crowd(bench, { id: `w3-${callers}`, callers, rounds, cap: bench.sized(6000, 3000), rivals: true, peersOnce: true });
    await bench.on('loopback', async () => {
      await many(100, bench.sized(5, 3));
      await many(1000, bench.sized(5, 3));
    });
    await bench.on('1 ms', () => many(100, bench.sized(2, 1)));
  },
};

export const w6 = {
  title: 'W6: 10,000 callers on one key',
  run: (bench) =>
    bench.on('loopback', () =>
      crowd(bench, {
        id: 'w6-crowd',
        callers: bench.sized(10_000, 2000),
        rounds: bench.sized(5, 3),
        // A round of the others takes up to a minute, and their numbers differ from ours by factors.
        peersOnce: true,
        cap: bench.sized(60_000, 5000),
        // At that rate they would need more than six times the cap.
        giveUp: bench.giveUp ? { after: bench.sized(10_000, 2000), below: 0.025 } : undefined,
        more: [{ key: 'rss', title: 'RSS MB' }],
      }),
    ),
};

const crowd = (bench, { id, callers, rounds, cap, giveUp, rivals, peersOnce, more = [] }) =>
  bench.compare({
    id,
    title: `${callers} callers of one process on one key, one section of 1 ms each, ${cap / 1000} s at most`,
    rounds,
    peersOnce,
    columns: [
      { key: 'done', title: `done of ${callers}` },
      { key: 'elapsed', title: 'ms' },
      { key: 'ratio', title: '÷ ideal', digits: 2 },
      { key: 'waitP99', title: 'wait p99 ms' },
      { key: 'requests', title: 'requests' },
      requestsPerSection,
      ...more,
      failing,
      overlapping,
    ],
    chart: { key: 'ratio', title: `${callers} callers on one key: time for each section ÷ a bare section`, unit: '× ideal' },
    measure: (contestant) =>
      bench.withCrew(contestant, { callers, rivals }, async (crew, bare) => {
        const { answers, ...cost } = await bench.measured(crew, 'once', { callers, ms: 1, cap, giveUp });
        const [{ done, failed, errors, elapsed, finish, rss }] = answers;
        return {
          done,
          missing: callers - done,
          failed,
          errors,
          elapsed,
          finish,
          ratio: done > 0 ? elapsed / (done * bare) : undefined,
          bare,
          waitP99: waitsOf(answers, 0.99),
          requestsPerSection: cost.requests / done,
          rss,
          ...cost,
          overlaps: overlapsOf(answers),
        };
      }),
  });
