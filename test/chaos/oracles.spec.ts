import '../support/virtual-time.js'; // all times are those of the story
import { EMPTIED, JUMPED } from '../../chaos/faults/fault.js';
import { earlyLoss } from '../../chaos/oracles/early-loss.js';
import { fence } from '../../chaos/oracles/fence.js';
import { lostUpdate } from '../../chaos/oracles/lost-update.js';
import type { Facts, Oracle } from '../../chaos/oracles/oracle.js';
import { overlap } from '../../chaos/oracles/overlap.js';
import { tokens } from '../../chaos/oracles/tokens.js';
import { LOSS, NO_LOSS, Story } from './story.js';

function found(oracle: Oracle, story: Story, facts: Facts = NO_LOSS): string[] {
  return oracle(story.history, facts).map(({ what }) => what);
}

describe('two claims of one key', () => {
  it('that follow one another are right', () => {
    const story = new Story();
    story.hold({ from: 0, to: 100 });
    story.hold({ from: 100 });
    expect(found(overlap, story)).toEqual([]);
  });

  it('that overlap are seen, unless the store was made to forget', () => {
    const story = new Story();
    story.hold({ from: 0, to: 100 });
    story.hold({ from: 90 });
    expect(found(overlap, story)).toEqual(['w0.1-2 (alone, token 2) is granted 10.0 ms before w0.1-1 (alone, token 1) ends']);
    expect(found(overlap, story, LOSS)).toEqual([]);
  });

  it('that overlap are seen beside the jumps of one member, unless it has jumped since the first one asked', () => {
    const story = new Story();
    const where = { group: 'clock-member', target: '', detail: '' };
    const jump = (n: number, from: number, to: number) =>
      story.add(from, { e: 'fault', n, name: JUMPED, ...where }, 'chaos').add(to, { e: 'healed', n, name: JUMPED }, 'chaos');
    jump(1, 1_000, 1_500);
    story.hold({ from: 2_000, to: 2_500 });
    story.hold({ from: 2_400, to: 2_600 });
    expect(found(overlap, story, LOSS)).toHaveLength(1);
    jump(2, 2_100, 2_200);
    expect(found(overlap, story, LOSS)).toEqual([]);
    story.add(2_650, { e: 'fault', n: 3, name: EMPTIED, ...where }, 'chaos');
    story.hold({ from: 5_000, to: 5_500 });
    story.hold({ from: 5_400 });
    expect(found(overlap, story, LOSS)).toEqual([]);
  });

  it('are right when the first one was over by its own clock, whatever its holder still does', () => {
    const story = new Story();
    story.hold({ from: 0, to: 5_000, remaining: 1_000 });
    story.hold({ from: 1_000 });
    expect(found(overlap, story)).toEqual([]);
  });

  it('overlap when the first one was claimed again meanwhile', () => {
    const story = new Story();
    const id = story.hold({ from: 0, to: 5_000, remaining: 1_000 });
    story.add(900, { e: 'claim', id, remaining: [800] });
    story.hold({ from: 1_000 });
    expect(found(overlap, story)).toHaveLength(1);
  });

  it('overlap also when the holder was killed: the store cannot know that', () => {
    const story = new Story();
    story.grant(0, story.ask(-1, { w: 'w1.1' }));
    story.add(10, { e: 'killed', worker: 'w1.1' }, 'chaos');
    story.hold({ from: 500 });
    expect(found(overlap, story)).toHaveLength(1);
  });

  it('are right within one call chain', () => {
    const story = new Story();
    const id = story.hold({ from: 0, to: 100 });
    story.hold({ from: 10, to: 50, chain: id });
    expect(found(overlap, story)).toEqual([]);
  });

  it('are right for two readers, and wrong for a reader and a writer', () => {
    const story = new Story();
    story.hold({ from: 0, mode: 'read' });
    story.hold({ from: 50, mode: 'read' });
    expect(found(overlap, story)).toEqual([]);
    story.hold({ from: 60 });
    expect(found(overlap, story)).toHaveLength(1);
  });

  it('are as many as the permits allow', () => {
    const story = new Story();
    story.hold({ from: 0, mode: 'permits', count: 2, permits: 3 });
    story.hold({ from: 10, mode: 'permits', count: 1, permits: 3 });
    expect(found(overlap, story)).toEqual([]);
    story.hold({ from: 20, mode: 'permits', count: 1, permits: 3 });
    expect(found(overlap, story)).toEqual(['w0.1-3 (permits, token 3) makes 4 permits taken of 3']);
  });
});

describe('an update', () => {
  const write = (story: Story, t: number, id: string, read: number, done = t) =>
    story.add(t, { e: 'wrote', id, key: 'a', read, readAt: t - 1, remaining: 100, done });

  it('is lost when two valid writes are over the same value', () => {
    const story = new Story();
    write(story, 10, 'x', 1);
    write(story, 20, 'y', 2);
    expect(found(lostUpdate, story)).toEqual([]);
    write(story, 30, 'z', 2);
    expect(found(lostUpdate, story)).toHaveLength(1);
  });

  it('is not judged when its process was stopped between the check and the write, nor compared with what came before', () => {
    const story = new Story();
    write(story, 10, 'x', 1);
    write(story, 20, 'late', 1, 500);
    write(story, 600, 'y', 1);
    expect(found(lostUpdate, story)).toEqual([]);
  });

  it('is never lost where the token is compared', () => {
    const exact = { key: 'a', counter: 5, accepted: 5, damaged: 0 };
    expect(found(fence, new Story(), { ...LOSS, fenced: [exact] })).toEqual([]);
    expect(found(fence, new Story(), { ...LOSS, fenced: [{ ...exact, counter: 4 }] })).toHaveLength(1);
    expect(found(fence, new Story(), { ...LOSS, fenced: [{ ...exact, damaged: 1 }] })).toHaveLength(1);
  });
});

describe('tokens', () => {
  it.each<[string, number | null, number]>([
    ['that repeat', 7, 1],
    ['that fall', 6, 1],
    ['that are none', null, 1],
    ['that are no safe integers', 2 ** 60, 1],
    ['that grow', 8, 0],
  ])('%s are judged', (_what, token, violations) => {
    const story = new Story();
    story.hold({ from: 0, token: 7 });
    story.hold({ from: 200, token });
    expect(found(tokens, story)).toHaveLength(violations);
  });

  it('of readers are those of the last write', () => {
    const story = new Story();
    story.hold({ from: 0, token: 7 });
    story.hold({ from: 200, token: 7, mode: 'read' });
    story.hold({ from: 300, token: 7, mode: 'read' });
    expect(found(tokens, story)).toEqual([]);
    story.hold({ from: 400, token: 6, mode: 'read' });
    expect(found(tokens, story)).toHaveLength(1);
  });

  it('of an owner that the store forgot may be smaller than those of the next one, but not the other way round', () => {
    const story = new Story();
    story.hold({ from: 0, token: 1, owner: 'old' });
    story.hold({ from: 50, token: 10, owner: 'new' });
    story.hold({ from: 100, token: 2, owner: 'old' });
    expect(found(tokens, story, LOSS)).toEqual([]);
    story.hold({ from: 200, token: 3, owner: 'newest' });
    expect(found(tokens, story, LOSS)).toHaveLength(1);
  });
});

describe('a lease that is lost', () => {
  const lose = (story: Story, at: number, terms: object = {}) => {
    const id = story.ask(-1, terms);
    story.grant(0, id, { remaining: 1_000 });
    story.add(at, { e: 'signal', id, reason: 'LockLostError: …' });
  };

  it.each([
    ['before its end is a false loss', 500, {}, 1],
    ['at its end is right', 1_000, {}, 0],
    ['by its maxHold is right', 500, { maxHold: 500 }, 0],
  ])('%s', (_what, at, terms, violations) => {
    const story = new Story();
    lose(story, at, terms);
    expect(found(earlyLoss, story)).toHaveLength(violations);
    expect(found(earlyLoss, story, LOSS)).toEqual([]);
  });

  it.each([
    ['before its first renewal is right', 1_000, 0],
    ['later is a false loss', 4_000, 1],
  ])('because a member of a quorum forgot it %s', (_what, at, violations) => {
    const story = new Story();
    story.add(at, { e: 'fault', n: 0, name: EMPTIED, group: 'restart', target: 'all', detail: '' }, 'chaos');
    const id = story.ask(-1, { keyTimeout: 6_000 });
    story.grant(0, id, { remaining: 6_000 });
    story.add(at + 1_000, { e: 'signal', id, reason: 'LockLostError: …' });
    expect(found(earlyLoss, story)).toHaveLength(violations);
  });

  it('because its release was answered so is a false loss, too', () => {
    const story = new Story();
    const id = story.ask(-1);
    story.grant(0, id);
    story.add(10, { e: 'releasing', id }).add(11, { e: 'released', id, ours: false });
    expect(found(earlyLoss, story)).toHaveLength(1);
  });
});
