// Locks in observed time in random worlds, with clocks of different speeds, pauses, lost and late requests, and processes that die. See world.ts.
import { brokenIn, runWorlds, worldsHold } from './worlds.js';

worldsHold(2);

it('worlds in which clocks differ by more than is promised show it', async () => {
  expect(brokenIn(await runWorlds(3, { drift: 0.04, seeds: [6, 8, 9] }))).not.toEqual([]);
});
