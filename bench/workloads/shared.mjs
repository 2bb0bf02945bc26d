// Callers of several processes that come again and again for one key which several may hold (W7, W8).
import { against, waitsOf } from '../measure/bench.mjs';
import { clock } from '../measure/clock.mjs';
import { crowded } from '../measure/oracle.mjs';
import { sum } from '../measure/statistics.mjs';
import { failing, overlapping, requestsPerSection } from './columns.mjs';

/**
 * @param {object} table
 * @param {'read/write' | 'permits'} table.kind what the callers want.
 * @param {number} [table.writes] the part of the calls that write.
 * @param {number} [table.permits]
 * @param {string} table.rival the contestant that all are compared with.
 */
export function shared(bench, { id, title, kind, size, callers, writes = 0, permits = 1, rival }) {
  const duration = bench.sized(2000, 1000);
  return bench.compare({
    id,
    title: `${title}: ${size} × ${callers} callers, sections of 1 ms, ${duration / 1000} s`,
    rounds: bench.sized(5, 3),
    columns: [
      { key: 'perSecond', title: 'sections/s' },
      { key: 'ratio', title: `÷ ${rival}`, digits: 2 },
      { key: 'waitP99', title: 'wait p99 ms' },
      { key: 'waitRatio', title: 'wait p99 ÷ ideal', digits: 2 },
      { key: 'writeWaitP99', title: 'of writers, ms' },
      requestsPerSection,
      { key: 'cpuPerSection', title: 'CPU µs per section' },
      failing,
      overlapping,
    ].filter(({ key }) => key !== (kind === 'permits' ? 'writeWaitP99' : 'waitRatio')),
    chart: { key: 'perSecond', title: `${title}, ${size} × ${callers} callers: sections`, unit: 'sections/s', more: true },
    canTakePart: ({ shares }) => shares?.includes(kind),
    relate: [against(rival, { ratio: 'perSecond' })],
    measure: (contestant) =>
      bench.withCrew(contestant, { size, callers: size * callers }, async (crew, bare) => {
        const options = { callers, kind, writes, permits, ms: 1, duration, startAt: clock() + 100 };
        const { answers, ...cost } = await bench.measured(crew, 'share', options);
        const done = sum(answers.map((answer) => answer.done));
        const waitP99 = waitsOf(answers, 0.99);
        const weighed = answers.flatMap(({ read, write }) => [
          { times: read, weight: 1 },
          { times: write, weight: Infinity },
        ]);
        return {
          perSecond: (done / duration) * 1000,
          waitP99,
          // In a fair queue each waits for one section of all others, `permits` at a time.
          waitRatio: waitP99 / ((size * callers * bare) / permits),
          writeWaitP99: waitsOf(
            answers.map(({ writeWaits }) => ({ waits: writeWaits })),
            0.99,
          ),
          requestsPerSection: cost.requests / done,
          cpuPerSection: (cost.cpu / done) * 1000,
          failed: sum(answers.map(({ failed }) => failed)),
          ...cost,
          overlaps: crowded(weighed, kind === 'permits' ? permits : Number.MAX_SAFE_INTEGER),
        };
      }),
  });
}
