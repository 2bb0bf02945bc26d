import '../support/virtual-time.js'; // all times are those of the story
import { idleKey } from '../../chaos/oracles/idle-key.js';
import { latch } from '../../chaos/oracles/latch.js';
import { nothingLeft } from '../../chaos/oracles/nothing-left.js';
import type { Facts, Oracle } from '../../chaos/oracles/oracle.js';
import { patience } from '../../chaos/oracles/patience.js';
import { trouble } from '../../chaos/oracles/trouble.js';
import { NO_LOSS, Story } from './story.js';

function found(oracle: Oracle, story: Story, facts: Facts = NO_LOSS): string[] {
  return oracle(story.history, facts).map(({ what }) => what);
}

const end = (story: Story, at: number) => story.add(at, { e: 'calm' }).add(at, { e: 'lag', ms: 1 });

describe('a call', () => {
  it('has its answer by its patience and one requestTimeout', () => {
    const story = new Story();
    story.grant(1_900, story.ask(0, { patience: 1_000 }));
    expect(found(patience, story)).toEqual([]);
  });

  it('that is answered later, or never, is seen', () => {
    const story = new Story();
    story.grant(2_600, story.ask(0, { patience: 1_000 }));
    story.ask(0, { patience: 1_000 });
    end(story, 3_000);
    expect(found(patience, story)).toEqual([
      'w0.1-1 with a patience of 1000 ms has its answer 300 ms too late',
      'w0.1-2 with a patience of 1000 ms has its answer never',
    ]);
  });

  it('has so much longer as its process stood still', () => {
    const story = new Story();
    story.grant(2_600, story.ask(0, { patience: 1_000 }));
    story.add(1_500, { e: 'lag', ms: 600 });
    end(story, 3_000);
    expect(found(patience, story)).toEqual([]);
  });

  it('that is aborted ends at once', () => {
    const story = new Story();
    const id = story.ask(0);
    story.add(100, { e: 'aborting', id }).add(900, { e: 'ended', id, outcome: 'aborted', error: '' });
    expect(found(patience, story)).toHaveLength(1);
  });

  it('that is aborted may give back its last term first, if it is a candidate', () => {
    const story = new Story();
    const id = story.ask(0, { kind: 'leader' });
    story.add(100, { e: 'aborting', id }).add(900, { e: 'ended', id, outcome: 'aborted', error: '' });
    expect(found(patience, story)).toEqual([]);
  });

  it('of a killed process is not waited for', () => {
    const story = new Story();
    story.ask(0, { patience: 1_000 });
    story.add(500, { e: 'killed', worker: 'w0.1' }, 'chaos').add(9_000, { e: 'calm' }, 'chaos');
    expect(found(patience, story)).toEqual([]);
  });
});

describe('a key for which somebody waits', () => {
  it('is taken within two retryIntervals', () => {
    const story = new Story();
    story.hold({ from: 0, to: 100 });
    story.hold({ asked: 50, from: 300 });
    expect(found(idleKey, story)).toEqual([]);
  });

  it('and that is idle for longer is seen', () => {
    const story = new Story();
    story.hold({ from: 0, to: 100 });
    story.hold({ asked: 50, from: 2_000 });
    expect(found(idleKey, story)).toHaveLength(1);
  });

  it('may be idle for a keyTimeout and a second after its holder was killed', () => {
    const story = new Story();
    story.grant(0, story.ask(-1, { w: 'w1.1', keyTimeout: 3_000 }), { remaining: 3_000 });
    story.add(10, { e: 'killed', worker: 'w1.1' }, 'chaos');
    story.hold({ asked: 50, from: 4_000 });
    expect(found(idleKey, story)).toEqual([]);
    story.hold({ asked: 4_010, from: 30_000 });
    expect(found(idleKey, story)).toHaveLength(1);
  });

  it('may be idle while a fault is at work', () => {
    const story = new Story();
    story.hold({ from: 0, to: 100 });
    story.add(100, { e: 'fault', n: 1, name: 'x', group: 'server', target: 'all', detail: '' }, 'chaos');
    story.add(5_000, { e: 'healed', n: 1, name: 'x' }, 'chaos');
    story.hold({ asked: 50, from: 6_100 });
    expect(found(idleKey, story)).toEqual([]);
  });
});

describe('a latch', () => {
  const common = { e: 'latch' as const, key: 'l', round: 1, patience: 60_000, retryInterval: 100, requestTimeout: 1_000 };
  const tell = (awaited: number): Story => {
    const story = new Story();
    story.add(0, { ...common, id: 's', op: 'set', count: 2 }).add(1, { e: 'latched', id: 's', result: 'true' });
    story.add(2, { ...common, id: 'a', op: 'await', count: 0 }).add(awaited, { e: 'latched', id: 'a', result: 'open' });
    for (const [i, id] of ['d', 'e'].entries()) {
      story.add(100 + i, { ...common, id, op: 'down', count: 0 }).add(110 + i, { e: 'latched', id, result: String(1 - i) });
    }
    return end(story, 20_000);
  };

  it.each([
    ['opens when it is counted down', 111, 0],
    ['that opens before is seen', 100.5, 1],
    ['that opens long after is seen', 5_000, 1],
  ])('%s', (_what, awaited, violations) => {
    expect(found(latch, tell(awaited))).toHaveLength(violations);
  });
});

describe('at the end', () => {
  it('nothing is left in a worker or in the store', () => {
    const story = new Story();
    story.add(0, { e: 'closing', bound: 1_000 }).add(100, { e: 'closed' }).add(200, { e: 'left', resources: [], listeners: [] });
    expect(found(nothingLeft, story)).toEqual([]);
    story.add(300, { e: 'left', resources: ['Timeout ×2'], listeners: ['close ×1'] });
    expect(found(nothingLeft, story, { ...NO_LOSS, leftovers: [{ key: 'a', what: 'a: a string' }] })).toHaveLength(3);
  });

  it.each([
    ['late', (story: Story) => story.add(5_000, { e: 'closed' })],
    ['never', (story: Story) => story],
  ])('a worker that is closed %s is seen', (_when, close) => {
    expect(found(nothingLeft, close(new Story().add(0, { e: 'closing', bound: 1_000 })))).toHaveLength(1);
  });

  it('a place in a queue may be left if its owner was refused to leave', () => {
    const story = new Story();
    const facts = { ...NO_LOSS, leftovers: [{ key: 'q', what: 'q', owners: ['x@y:1:u'] }] };
    expect(found(nothingLeft, story, facts)).toHaveLength(1);
    story.add(0, { e: 'event', name: 'unknown', key: 'a', detail: 'leave of x@y:1:u: Redis: NOPERM …' });
    expect(found(nothingLeft, story, facts)).toEqual([]);
  });

  it.each(['internal', 'config', 'final', 'aborted', 'shutdown'] as const)('a call that ended as "%s" for no reason is seen', (outcome) => {
    const story = new Story();
    const id = story.ask(0);
    story.add(1, { e: 'ended', id, outcome, error: '' });
    expect(found(trouble, story)).toHaveLength(1);
  });

  it('an unhandled rejection and a process that ended by itself are seen', () => {
    const story = new Story();
    story.add(0, { e: 'trouble', what: 'unhandled rejection', detail: 'Error' });
    story.add(1, { e: 'exit', worker: 'w0.1', expected: false, detail: 'code 1' });
    expect(found(trouble, story)).toHaveLength(2);
  });
});
