// Everything that can happen at three members, in every order: who asks, which member answers, which restarts empty, when time passes.
import { explore, type Explored } from '../records/model/explore.js';
import { clock, stopTheClock } from '../records/model/stopped-clock.js';
import { OFFSET, TTL } from './interleavings.server.js';
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

/** Milliseconds: longer than a memberTimeout, shorter than a lease. */
const SHORT = 300;
/** Milliseconds. */
const WRONG = [300, 0, -300];
const play = (owners: string, rest: Omit<Scenario, 'owners'> = {}): Promise<Explored> =>
  explore(() => QuorumWorld.start({ owners: owners.split(' '), ...rest }));

describe('whatever the order, a quorum of three keeps its promises', () => {
  let states = 0;

  it.each<[string, Omit<Scenario, 'owners'>, atLeast: number]>([
    ['A A', { isSplit: true }, 500],
    ['A A', { restarts: 1 }, 300],
    ['A A', { passes: [TTL] }, 2_000],
    ['AA A', {}, 100],
    ['A A', { failures: 1 }, 150],
    ['AR A', { failures: 1 }, 1_000],
    ['AR AR', {}, 2_000],
    ['ANR A', {}, 2_000],
    ['AN A', { restarts: 1 }, 1_500],
    ['AR A', { clocks: WRONG }, 3_000],
    ['ANR', { restarts: 1, passes: [SHORT] }, 5_000],
    ['ANR', { restarts: 1, passes: [TTL] }, 5_000],
  ])('with %s and %p', async (owners, rest, atLeast) => {
    const explored = await play(owners, rest);
    expect(explored.states).toBeGreaterThan(atLeast);
    states += explored.states;
  });

  it('has tried many of them', () => {
    process.stderr.write(`${states} states\n`);
    expect(states).toBeGreaterThan(20_000);
  });
});

describe('the model finds', () => {
  const serve = (alter: NonNullable<Scenario['serve']>): Pick<Scenario, 'serve'> => ({ serve: alter });

  it('a quorum that asks no member what it remembers', async () => {
    await expect(play('A A', { restarts: 1, quarantine: 0 })).rejects.toThrow('hold the key at the same time');
  });

  it('members that were started again, and say that they remember all', async () => {
    await expect(play('A A', { restarts: 1, remembers: () => Promise.resolve(Infinity) })).rejects.toThrow('hold the key at the same time');
  });

  it('members that forget their last token', async () => {
    const forgetful = serve((server, verb, request) => {
      server.fence = 0;
      return server.serve(verb, request);
    });
    await expect(play('AR A', { clocks: WRONG, ...forgetful })).rejects.toThrow('was given before');
  });

  it('members that take nothing back', async () => {
    const stubborn = serve((server, verb, request) => (verb === 'leave' ? 'left' : server.serve(verb, request)));
    await expect(play('A A', stubborn)).rejects.toThrow('still has it');
  });
});
