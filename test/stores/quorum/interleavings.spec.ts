// Everything that can happen at three members, in every order: who asks, which member answers, which restarts empty, when time passes.
import { play, promisesHold, WRONG } from './interleavings.play.js';
import type { Scenario } from './interleavings.server.js';

describe('whatever the order, a quorum of three keeps its promises', () => {
  promisesHold([
    ['A A', { isSplit: true }, 500],
    ['A A', { restarts: 1 }, 300],
    ['AA A', {}, 100],
    ['A A', { failures: 1 }, 150],
    ['ANR A', {}, 2_000],
    ['AN A', { restarts: 1 }, 1_500],
  ]);
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
