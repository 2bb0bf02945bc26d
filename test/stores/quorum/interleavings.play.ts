import { explore } from '../records/model/explore.js';
import { stopTheClock } from '../records/model/stopped-clock.js';
import type { Scenario } from './interleavings.server.js';
import { QuorumWorld } from './interleavings.world.js';

stopTheClock();
const realRandom = Math.random;
beforeAll(() => {
  Math.random = () => 0.5;
});
afterAll(() => {
  Math.random = realRandom;
});

/** Milliseconds: longer than a memberTimeout, shorter than a lease. */
export const SHORT = 1_500;
/** Milliseconds by which the clocks of the members are wrong. */
export const WRONG = [1_500, 0, -1_500];

export const play = (owners: string, rest: Omit<Scenario, 'owners'> = {}): Promise<number> =>
  explore(async () => new QuorumWorld({ owners: owners.split(' '), ...rest }));

export function promisesHold(scenarios: readonly (readonly [owners: string, rest: Omit<Scenario, 'owners'>, atLeast: number])[]): void {
  it.each(scenarios)('with %s and %j', async (owners, rest, atLeast) => {
    expect(await play(owners, rest)).toBeGreaterThan(atLeast);
  });
}
