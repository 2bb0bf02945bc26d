// The larger scenarios of interleavings.spec.ts.
import { promisesHold, SHORT, WRONG } from './interleavings.play.js';
import { TTL } from './interleavings.server.js';

describe('whatever the order, a quorum of three keeps its promises', () => {
  promisesHold([
    ['ANR A', {}, 2_000],
    ['AN A', { restarts: 1 }, 1_500],
    ['A A', { passes: [TTL] }, 2_000],
    ['AR A', { failures: 1 }, 1_000],
    ['AR AR', {}, 2_000],
    ['AR A', { clocks: WRONG }, 3_000],
    ['ANR', { restarts: 1, passes: [SHORT] }, 5_000],
    ['ANR', { restarts: 1, passes: [TTL] }, 5_000],
    ['ANR A', { jumps: [40_000], jumpsAt: 'all votes' }, 19_000],
    ['AN AA', { jumps: [40_000], jumpsAt: 'all votes' }, 15_000],
  ]);
});
