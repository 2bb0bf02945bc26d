// A lone caller: acquire and release of a free key, again and again; and one waiter that is woken by a release in another process.
import { isPeer } from '../contestants/lineup.mjs';
import { against, overlapsOf } from '../measure/bench.mjs';
import { sleep } from '../measure/clock.mjs';
import { roundTripAfterPause } from '../measure/network.mjs';
import { quantile } from '../measure/statistics.mjs';
import { overlapping } from './columns.mjs';
import { comparePairs } from './pairs.mjs';

export const w1 = { title: 'W1: a lone caller, a lone waiter', run };

async function run(bench) {
  await bench.on('loopback', async () => {
    await lone(bench, { rounds: bench.sized(5, 3), slices: bench.sized(20, 8), count: 1000, warmUp: bench.sized(10_000, 5000) });
    await woken(bench, bench.sized(5, 1), bench.sized(25, 10));
  });
  await bench.on('1 ms', async () => {
    await lone(bench, { rounds: bench.sized(5, 1), slices: 4, count: 50, warmUp: 150, canTakePart: ({ name }) => !isPeer(name) });
    if (!bench.quick) await woken(bench, 2, 15);
  });
}

const lone = (bench, { rounds, slices, count, warmUp, canTakePart }) =>
  comparePairs(bench, {
    id: 'w1-lone',
    title: `one caller, ${slices} × ${count} × acquire + release of a free key; client and server on one core`,
    rounds,
    canTakePart,
    columns: [
      { key: 'p50', title: 'p50 µs', digits: 1 },
      { key: 'p99', title: 'p99 µs', digits: 1 },
    ],
    key: 'p50',
    chart: { key: 'ratio', title: 'acquire + release of a free key: p50 ÷ that of SET NX and a compare-and-delete', unit: '× raw' },
    relate: [against('redlock', { overRedlock: 'ratio' }), against('murlock', { overMurlock: 'ratio' })],
    crew: { warmUp, cores: 'together' },
    slices,
    slice: async (crew) => {
      const { answers, ...cost } = await bench.measured(crew, 'pairs', { count });
      const [{ took }] = answers;
      return { pairs: count, p50: quantile(took, 0.5), p99: quantile(took, 0.99), ...cost };
    },
  });

const woken = (bench, rounds, count) =>
  bench.compare({
    id: 'w1-woken',
    title: `one process holds, one waits: from the release to the waiter's section, ${count} times`,
    rounds,
    peersOnce: true,
    columns: [
      { key: 'p50', title: 'p50 ms', digits: 3 },
      { key: 'p99', title: 'p99 ms', digits: 3 },
      { key: 'ping', title: 'a PING after such a pause, ms', digits: 3 },
      { key: 'inPings', title: 'p50 in PINGs', digits: 1 },
      overlapping,
    ],
    chart: { key: 'p50', title: 'from a release to the start of one waiter, p50', unit: 'ms' },
    measure: (contestant) =>
      bench.withCrew(contestant, { size: 2, callers: 2, rivals: true }, async (crew) => {
        const took = [];
        let overlaps = 0;
        for (let i = 0; i < count; i++) {
          await crew.one(0, 'take');
          const waiting = crew.one(1, 'waitFor');
          waiting.catch(() => undefined);
          await sleep(15 + Math.random() * 15);
          const [given, entered] = await Promise.all([crew.one(0, 'give'), waiting]);
          took.push(entered.at - given.at);
          overlaps += overlapsOf([given, entered]);
        }
        const ping = await roundTripAfterPause(bench.network.port, count);
        const p50 = quantile(took, 0.5);
        return { p50, p99: quantile(took, 0.99), ping, inPings: p50 / ping, overlaps };
      }),
  });
