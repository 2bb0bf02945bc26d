// Everything that can happen at three members, in every order: who asks, which member answers, which restarts empty, when time passes.
import { play, promisesHold, WRONG } from './interleavings.play.js';
import type { Scenario } from './interleavings.server.js';
import { QuorumWorld } from './interleavings.world.js';

describe('whatever the order, a quorum of three keeps its promises', () => {
  promisesHold([
    ['A A', { isSplit: true }, 500],
    ['A A', { restarts: 1 }, 300],
    ['AA A', {}, 100],
    ['A A', { failures: 1 }, 150],
  ]);
});

describe('when the clock of one member jumps forward', () => {
  const jumps = [40_000];

  describe('nobody gets a key that all members have granted, nor ends a lease of another one', () => {
    promisesHold([
      ['A AA', { jumps, jumpsAt: 'all votes' }, 1_000],
      ['AA AA', { jumps, jumpsAt: 'all votes' }, 2_000],
      ['AN A', { jumps: [-40_000, 40_000], jumpsAt: 'all votes' }, 2_000],
    ]);
  });

  it('two hold a key of which one member has not answered the first of them yet', async () => {
    await expect(play('A A', { jumps })).rejects.toThrow('hold the key at the same time');
  });

  it('two hold a key though all members are up and have answered: one had its vote with another caller at that time', async () => {
    const world = new QuorumWorld({ owners: ['A', 'AA'], jumps, jumpsAt: 'rest' });
    const act = async (...actions: string[]): Promise<void> => {
      for (const action of actions) await world.act(action);
    };
    // Both ask all members. The first one gets the votes of members 0 and 1, the second one that of member 2.
    await act('asks 0', 'asks 1', 'answers 0', 'answers 0', 'answers 3');
    expect(world.holders()).toEqual(['o0', 'o0', 'o1']);
    // The others refuse, and the second one gives its vote back: it is free until the first renewal.
    await act('answers 0', 'answers 0', 'answers 0', 'answers 0');
    expect(world.holders()).toEqual(['o0', 'o0', undefined]);
    expect(world.actions()).toEqual(['asks 1', 'jumps']);
    await act('jumps', 'asks 1', 'answers 0', 'answers 0', 'answers 0');
    // The first member's token is 40 s ahead: the third one has to record it.
    await expect(act('answers 0')).rejects.toThrow('o0 and o1 hold the key at the same time');
  });

  it('nobody else gets it after the first renewal', async () => {
    const world = new QuorumWorld({ owners: ['AN', 'AA'], jumps, jumpsAt: 'rest' });
    const act = async (...actions: string[]): Promise<void> => {
      for (const action of actions) await world.act(action);
    };
    await act('asks 0', 'asks 1', 'answers 0', 'answers 0', 'answers 3', 'answers 0', 'answers 0', 'answers 0', 'answers 0');
    await act('asks 0', 'answers 0', 'answers 0', 'answers 0', 'answers 0');
    expect(world.holders()).toEqual(['o0', 'o0', 'o0']);
    await act('jumps', 'asks 1', 'answers 0', 'answers 0', 'answers 0');
    expect(world.actions().filter((action) => action.startsWith('asks'))).toEqual([]);
  });
});

describe('the model finds', () => {
  it('a quorum that asks no member what it remembers', async () => {
    await expect(play('A A', { restarts: 1, quarantine: 0 })).rejects.toThrow('hold the key at the same time');
  });

  it('members that were started again, and say that they remember all', async () => {
    await expect(play('A A', { restarts: 1, remembers: () => Promise.resolve(Infinity) })).rejects.toThrow('hold the key at the same time');
  });

  it('members that forget their last token', async () => {
    const serve: Scenario['serve'] = (server, verb, request) => {
      server.fence = 0;
      return server.serve(verb, request);
    };
    await expect(play('AR A', { clocks: WRONG, serve })).rejects.toThrow('was given before');
  });

  it('members that take nothing back', async () => {
    const serve: Scenario['serve'] = (server, verb, request) => (verb === 'leave' ? 'left' : server.serve(verb, request));
    await expect(play('A A', { serve })).rejects.toThrow('still has it');
  });
});
