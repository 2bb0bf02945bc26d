// Locks in observed time, in random worlds: clocks of different speeds, pauses, lost and late requests, processes that die. See world.ts.
import { World, type WorldOptions } from './world.js';

const SPAN = 60_000;

type Kind = Omit<WorldOptions, 'seed' | 'span'>;

async function run(seeds: readonly number[], options: Kind): Promise<Pick<World, 'promises' | 'renewals' | 'countedDown'>[]> {
  const worlds: World[] = [];
  for (const seed of seeds) worlds.push(await World.run({ seed, span: SPAN, ...options }));
  return worlds;
}
const range = (first: number, count: number): number[] => Array.from({ length: count }, (_, index) => first + index);

it.each<[string, Kind]>([
  ['a store that counts its writes', {}],
])('with %s', async (_, options) => {
  const at = process.hrtime.bigint();
  const worlds = await run(range(1, Number(process.env.SEEDS ?? 4)), { ...options, ...JSON.parse(process.env.OPTIONS ?? '{}') });
  console.log(Number(process.hrtime.bigint() - at) / 1e6, worlds.map((w) => [w.promises.grants, w.renewals, w.countedDown, w.promises.kept, (w as World).simulated.count, (w as World).simulated.swept, (w as World).takeOvers.length].join(' ')).join('\n'));
  expect(worlds.flatMap(({ promises }) => promises.broken)).toEqual([]);
});
