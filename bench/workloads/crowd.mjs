// Many callers in one process come at once, and each wants one section of 1 ms on the one key (W3, W6).
import { overlapsOf, waitsOf } from '../measure/bench.mjs';
import { failing, overlapping, requestsPerSection } from './columns.mjs';

export const crowd = (bench, { id, callers, rounds, cap, giveUp, rivals, peersOnce, more = [] }) =>
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
