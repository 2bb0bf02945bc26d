// Everything that can happen at three members, in every order: who asks, which member answers, which restarts empty, when time passes.
import { explore, type Explored } from '../records/model/explore.js';
import { clock, stopTheClock } from '../records/model/stopped-clock.js';
import { OFFSET } from './interleavings.server.js';
import { QuorumWorld, type Scenario } from './interleavings.world.js';

jest.setTimeout(120_000);
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

const total = { states: 0, interleavings: 0, runs: 0 };
const play = (owners: string, rest: Omit<Scenario, 'owners'> = {}): Promise<Explored> =>
  explore(() => QuorumWorld.start({ owners: owners.split(' '), ...rest }));

it.each<[string, Omit<Scenario, 'owners'>, atLeast: number]>(JSON.parse(process.env.Q ?? '[["A A",{}]]'))('with %s and %p', async (owners, rest) => {
  const t = performance.timeOrigin;
  const explored = await play(owners, rest);
  process.stderr.write(`${owners} ${JSON.stringify(rest)} ${JSON.stringify(explored)}\n`);
});
