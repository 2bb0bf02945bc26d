// Callers of several processes that come again and again for one key which several may hold.
import { OURS_AS_MUTEX } from '../contestants/lineup.mjs';
import { against, waitsOf } from '../measure/bench.mjs';
import { clock } from '../measure/clock.mjs';
import { crowded } from '../measure/oracle.mjs';
import { sum } from '../measure/statistics.mjs';
import { failing, overlapping, requestsPerSection } from './columns.mjs';

export const w7 = {
  title: 'W7: readers and writers',
  async run(bench) {
    const mixed = (id, title, writes) =>
      shared(bench, { id, title, kind: 'read/write', size: 2, callers: 25, writes, rival: OURS_AS_MUTEX });
    await bench.on('loopback', async () => {
      await mixed('w7-95-5', '95 % read, 5 % write', 0.05);
      await mixed('w7-50-50', '50 % read, 50 % write', 0.5);
    });
  },
};

export const w8 = {
  title: 'W8: a semaphore of 10 permits',
  async run(bench) {
    const common = { title: '10 permits', kind: 'permits', permits: 10, rival: 'redis-semaphore' };
    await bench.on('loopback', async () => {
      for (const size of [1, 2]) await shared(bench, { id: `w8-${size}`, size, callers: 256 / size, ...common });
    });
  },
};

/**
 * @param {object} table
 * @param {'read/write' | 'permits'} table.kind what the callers want.
 * @param {number} [table.writes] the part of the calls that write.
 * @param {number} [table.permits]
 * @param {string} table.rival the contestant that all are compared with.
 */
function shared(bench, { id, title, kind, size, callers, writes = 0, permits = 1, rival }) {
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
