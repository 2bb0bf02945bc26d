import { World, type WorldOptions } from './world.js';

interface Kind extends Omit<WorldOptions, 'seed' | 'span'> {
  /** Of the first worlds, which have shown defects that others do not. */
  readonly seeds?: readonly number[];
}

const SPAN = 40_000;

const KINDS: readonly (readonly [name: string, kind: Kind])[] = [
  ['in which the store counts its writes', {}],
  ['in which it does not count', { isCounted: false }],
  ['with four times as many lost and late requests', { isStormy: true }],
  ['in which clocks stand still in pauses', { isSuspended: true }],
  ['in which nobody is woken', { isPolled: true }],
  ['in which nothing happens but deaths: who waits is the next one in time', { isCalm: true, seeds: [3, 4] }],
  ['in which the store is restored from a copy', { isRestored: true, seeds: [22, 48, 63] }],
  ['in which a store that does not count is restored', { isCounted: false, isRestored: true }],
  ['with an hour in which nobody comes', { hasLull: true }],
];

/** Runs so many worlds. */
export async function runWorlds(count: number, { seeds = [], ...kind }: Kind): Promise<World[]> {
  const worlds: World[] = [];
  for (let index = 0; index < count; index++) worlds.push(await World.run({ seed: seeds[index] ?? index + 1, span: SPAN, ...kind }));
  return worlds;
}

export const brokenIn = (worlds: readonly World[]): string[] => worlds.flatMap(({ promises }) => promises.broken);

/** A test for each kind of world. @param count worlds of each kind. */
export function worldsHold(count: number): void {
  it.each(KINDS)('worlds %s', async (_name, kind) => {
    const worlds = await runWorlds(count, kind);
    expect(brokenIn(worlds)).toEqual([]);
    const sum = (of: (world: World) => number): number => worlds.reduce((all, world) => all + of(world), 0);
    expect(sum(({ promises }) => promises.grants)).toBeGreaterThan(50 * count);
    expect(sum(({ promises }) => promises.kept)).toBeGreaterThan(2 * count);
    expect(sum(({ renewals }) => renewals)).toBeGreaterThan(20 * count);
    if (!kind.isRestored) expect(sum(({ countedDown }) => countedDown)).toBeGreaterThan(30 * count);
    if (kind.isCalm) expect(sum(({ takeOvers }) => takeOvers)).toBeGreaterThan(count);
    if (kind.hasLull) expect(sum(({ simulated }) => simulated.swept)).toBeGreaterThan(count);
  });
}
