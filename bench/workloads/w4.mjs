// Callers of several processes that come again and again for one key.
import { isPeer } from '../contestants/lineup.mjs';
import { overlapsOf, waitsOf } from '../measure/bench.mjs';
import { clock } from '../measure/clock.mjs';
import { sum } from '../measure/statistics.mjs';
import { failing, overlapping, requestsPerSection } from './columns.mjs';

export const w4 = { title: 'W4: 2 and 4 processes × 25 and 250 callers on one key', run };

async function run(bench) {
  const rounds = bench.sized(5, 2);
  // The tables without a goal have fewer rounds, and none with --quick.
  await bench.on('loopback', async () => {
    await processes(bench, { size: 2, callers: 250, ms: 1, rounds, duration: 3000 });
    await processes(bench, { size: 2, callers: 25, ms: 0, rounds, duration: 1500 });
    if (bench.quick) return;
    await processes(bench, { size: 2, callers: 25, ms: 1, rounds: 2, duration: 1500 });
    await processes(bench, { size: 4, callers: 25, ms: 1, rounds: 2, duration: 1500 });
    await processes(bench, { size: 4, callers: 250, ms: 1, rounds: 2, duration: 4000 });
  });
  if (!bench.quick) await bench.on('1 ms', () => processes(bench, { size: 2, callers: 25, ms: 1, rounds: 2, duration: 1500 }));
}

function processes(bench, { size, callers, ms, rounds, duration }) {
  const total = size * callers;
  const work = ms === 0 ? 'empty sections' : `sections of ${ms} ms`;
  const ideal = ms > 0;
  return bench.compare({
    id: `w4-${size}x${callers}${ideal ? '' : '-empty'}`,
    title: `${size} processes × ${callers} callers on one key, ${work}, ${duration / 1000} s`,
    rounds,
    // The goal for empty sections is a ratio to the best of them.
    peersOnce: ideal,
    columns: [
      { key: 'perSecond', title: 'sections/s' },
      ...(ideal ? [{ key: 'efficiency', title: 'efficiency', digits: 3 }] : [{ key: 'overBest', title: '÷ best peer', digits: 2 }]),
      { key: 'waitP99', title: 'wait p99 ms' },
      ...(ideal ? [{ key: 'waitRatio', title: 'wait p99 ÷ ideal', digits: 2 }] : []),
      { key: 'shares', title: 'shares min/max', digits: 2 },
      requestsPerSection,
      { key: 'cpuPerSection', title: 'CPU µs per section' },
      failing,
      overlapping,
    ],
    chart: ideal
      ? { key: 'waitRatio', title: `${size} × ${callers} callers on one key: wait p99 ÷ ideal`, unit: '× ideal' }
      : { key: 'perSecond', title: `${size} × ${callers} callers on one key, empty sections`, unit: 'sections/s', more: true, log: true },
    relate: ideal ? [] : [overBestPeer],
    measure: (contestant) =>
      bench.withCrew(contestant, { size, callers: total, rivals: true }, async (crew, bare) => {
        const { answers, ...cost } = await bench.measured(crew, 'loop', { callers, ms, duration, startAt: clock() + 50 });
        const done = answers.map((answer) => answer.done);
        const sections = sum(done);
        const waitP99 = waitsOf(answers, 0.99);
        return {
          perSecond: (sections / duration) * 1000,
          ...(ideal && { efficiency: (sections * bare) / duration, waitRatio: waitP99 / ((total - 1) * bare), bare }),
          waitP99,
          shares: Math.min(...done) / Math.max(...done),
          requestsPerSection: cost.requests / sections,
          cpuPerSection: (cost.cpu / sections) * 1000,
          failed: sum(answers.map(({ failed }) => failed)),
          done,
          ...cost,
          overlaps: overlapsOf(answers),
        };
      }),
  });
}

function overBestPeer(round) {
  const best = Math.max(...[...round].filter(([name]) => isPeer(name)).map(([, { perSecond = 0 }]) => perSecond));
  for (const numbers of round.values()) numbers.overBest = best > 0 ? numbers.perSecond / best : undefined;
}
