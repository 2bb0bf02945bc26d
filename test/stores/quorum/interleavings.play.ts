import { explore, type Explored } from '../records/model/explore.js';
import { clock, stopTheClock } from '../records/model/stopped-clock.js';
import { OFFSET, type Scenario } from './interleavings.server.js';
import { QuorumWorld } from './interleavings.world.js';

stopTheClock();
const real = { now: Date.now, random: Math.random };
beforeAll(() => {
  Date.now = () => OFFSET + clock.time;
  Math.random = () => 0.5;
});
afterAll(() => {
  Date.now = real.now;
  Math.random = real.random;
});

/** Milliseconds: longer than a memberTimeout, shorter than a lease. */
export const SHORT = 1_500;
/** Milliseconds by which the clocks of the members are wrong. */
export const WRONG = [1_500, 0, -1_500];

export const play = (owners: string, rest: Omit<Scenario, 'owners'> = {}): Promise<Explored> =>
  explore(() => QuorumWorld.start({ owners: owners.split(' '), ...rest }));

export function promisesHold(scenarios: readonly (readonly [owners: string, rest: Omit<Scenario, 'owners'>, atLeast: number])[]): void {
  it.each(scenarios)('with %s and %j', async (owners, rest, atLeast) => {
    expect((await play(owners, rest)).states).toBeGreaterThan(atLeast);
  });
}
