// Acquire and release of free keys, beside raw (W1, W2).
import { probed } from '../measure/bench.mjs';
import { median, medians, sum } from '../measure/statistics.mjs';
import { overlapping } from './columns.mjs';

const COSTS = [
  { key: 'cpuPerPair', title: 'client CPU µs', digits: 1 },
  { key: 'cpuRatio', title: '÷ raw', digits: 2 },
  { key: 'userPerPair', title: 'of it user', digits: 1 },
  { key: 'userOverRaw', title: '− raw', digits: 1 },
  { key: 'serverCpuPerPair', title: 'server CPU µs', digits: 1 },
  { key: 'serverCpuRatio', title: '÷ raw', digits: 2 },
  { key: 'commandTimePerPair', title: 'of it commands', digits: 1 },
  { key: 'requestsPerPair', title: 'requests per pair', digits: 2 },
];

/**
 * The contestant and raw alternate in slices so short that the speed of the machine hardly changes from one to the next. Raw beside itself shows how
 * exact the ratios are.
 *
 * @param {object} table
 * @param {string} table.key what is compared with raw.
 * @param {number} table.slices how many in a round.
 * @param {(crew) => Promise<object>} table.slice resolves to how many pairs it did, how fast, and what they cost.
 * @param {(crew) => Promise<void>} [table.prepare]
 */
export const comparePairs = (bench, { columns, key, crew: options, prepare, slices, slice, ...table }) =>
  bench.compare({
    ...table,
    columns: [...columns, { key: 'ratio', title: '÷ raw', digits: 3 }, ...COSTS, overlapping],
    measure: (contestant) =>
      bench.withRaw(contestant, options, async (crew, rawCrew) => {
        await prepare?.(crew);
        await prepare?.(rawCrew);
        const [own, raw] = [[], []];
        const turns = [
          [crew, own],
          [rawCrew, raw],
        ];
        for (let i = 0; i < slices; i++) {
          for (const [side, numbers] of turns) numbers.push(await slice(side));
          turns.reverse();
        }
        const cost = costOf(own);
        const rawCost = costOf(raw);
        return {
          ...medians(own),
          ...cost,
          ratio: median(own.map((numbers, i) => numbers[key] / raw[i][key])),
          cpuRatio: cost.cpuPerPair / rawCost.cpuPerPair,
          userOverRaw: cost.userPerPair - rawCost.userPerPair,
          serverCpuRatio: cost.serverCpuPerPair / rawCost.serverCpuPerPair,
          stray: sum(own.map(({ stray }) => stray)),
          commands: own.at(-1).commands,
          overlaps: await probed(crew),
        };
      }),
  });

function costOf(slices) {
  const total = (name) => sum(slices.map((numbers) => numbers[name]));
  const perPair = (name) => total(name) / total('pairs');
  return {
    cpuPerPair: perPair('cpu') * 1000,
    userPerPair: perPair('user') * 1000,
    serverCpuPerPair: perPair('serverCpu') * 1000,
    commandTimePerPair: perPair('commandTime'),
    requestsPerPair: perPair('requests'),
  };
}
