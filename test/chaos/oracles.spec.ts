import '../support/virtual-time.js'; // all times are those of the story
import { ALL, type LeaseRecord } from '../../lib/stores/records/record.work.js';
import { EMPTIED, JUMPED, RESTORED } from './faults/fault.js';
import { earlyLoss } from './oracles/early-loss.js';
import { fence } from './oracles/fence.js';
import { idleKey } from './oracles/idle-key.js';
import { latch } from './oracles/latch.js';
import { lostUpdate } from './oracles/lost-update.js';
import { nothingLeft } from './oracles/nothing-left.js';
import type { Facts, Oracle } from './oracles/oracle.js';
import { order } from './oracles/order.js';
import { overlap } from './oracles/overlap.js';
import { patience } from './oracles/patience.js';
import { RowExclusion } from './oracles/rows.js';
import { tokens } from './oracles/tokens.js';
import { trouble } from './oracles/trouble.js';
import { leftoversIn } from './stores/records/leftovers.js';
import { type Holding, LOSS, NO_LOSS, Story } from './story.js';

type Tell = (story: Story) => unknown;
/** A history, and how many violations are to be found in it. */
type Row = [title: string, tell: Tell, violations: number, facts?: Facts];

const found = (oracle: Oracle, story: Story, facts: Facts = NO_LOSS) => oracle(story.history, facts).map(({ what }) => what);

function judges(oracle: Oracle, rows: Row[]): void {
  it.each(rows)('%s', (...[, tell, violations, facts]) => {
    const story = new Story();
    tell(story);
    expect(found(oracle, story, facts)).toHaveLength(violations);
  });
}

const holds =
  (...holdings: Holding[]): Tell =>
  (story) =>
    holdings.forEach((holding) => story.hold(holding));
/** One after the other. */
const all =
  (...parts: Tell[]): Tell =>
  (story) =>
    parts.forEach((part) => part(story));
const killed =
  (worker: string, at: number): Tell =>
  (story) =>
    story.add(at, { e: 'killed', worker }, 'chaos');
const calm =
  (at: number): Tell =>
  (story) =>
    story.add(at, { e: 'calm' }, 'chaos').add(at, { e: 'lag', ms: 1 });
/** A fault that is healed, if it says when. */
const fault =
  (name: string, group: string, from: number, to?: number): Tell =>
  (story) => {
    story.add(from, { e: 'fault', n: from, name, group, target: 'all', detail: '' }, 'chaos');
    if (to !== undefined) story.add(to, { e: 'healed', n: from, name }, 'chaos');
  };

/** An operator takes a key away. */
const force =
  (from: number, to: number, result = 'forced', key = 'a'): Tell =>
  (story) => {
    story.add(from, { e: 'forcing', id: `f${from}`, key, grace: 0, keepFor: 1_000 }, 'w9.1');
    story.add(to, { e: 'forced', id: `f${from}`, result }, 'w9.1');
  };

describe('order: the answers of one key', () => {
  const refused =
    (at: number, asked: Parameters<Parameters<Tell>[0]['ask']>[1] = {}): Tell =>
    (story) =>
      story.add(at + 1, { e: 'ended', id: story.ask(at, { patience: 0, ...asked }), outcome: 'timeout', error: '' });
  const waits =
    (from: number, to: number): Tell =>
    (story) =>
      story.add(to, { e: 'ended', id: story.ask(from, { patience: to - from }), outcome: 'timeout', error: '' });
  const dies =
    (at: number, remaining: number): Tell =>
    (story) => {
      story.grant(at, story.ask(at - 1, { w: 'w7.1' }), { token: 1, remaining });
      story.add(at + 10, { e: 'killed', worker: 'w7.1' }, 'chaos');
    };
  const pair: Holding[] = [{ from: 0 }, { from: 150 }];
  const givesBackSlowly: Tell = (story) => {
    const id = story.ask(0, { mode: 'read' });
    story.grant(1, id, { token: 1 });
    story.add(200, { e: 'releasing', id }).add(400, { e: 'released', id, ours: true });
  };
  const write: Holding = { from: 210, asked: 20, to: 290, token: 5 };
  const crowd = Array.from({ length: 24 }, (_, i): Holding => ({ from: 300, asked: i, mode: 'read', token: 5 }));

  judges(order, [
    ['are of holdings that follow one another', holds(...pair), 0],
    ['are of readers beside each other', holds({ from: 0, mode: 'read', token: 1 }, { from: 50, mode: 'read', token: 1 }), 0],
    ['are of a reader beside a writer', holds({ from: 0, token: 1 }, { from: 50, mode: 'read', token: 1 }), 1],
    ['are of a reader with the token of a later write', holds({ from: 0, mode: 'read', token: 2 }, { from: 150, token: 2 }), 1],
    [
      'are of many readers that were asked for before the write whose token they have',
      all(givesBackSlowly, holds(write, ...crowd), refused(350)),
      0,
    ],
    ['are of a call within another of its chain', holds({ from: 0, chain: 'a' }, { from: 20, to: 40, chain: 'a', token: 1 }), 0],
    ['are of more permits than there are', holds(...[0, 20].map((from): Holding => ({ from, mode: 'permits', count: 2, permits: 3 }))), 1],
    [
      'come in another order than what they tell of',
      holds({ from: 200, asked: 0, token: 2 }, { from: 100, to: 150, asked: 50, token: 1 }),
      0,
    ],
    ['have tokens that no order makes grow', holds({ from: 200, asked: 0, token: 1 }, { from: 100, to: 150, asked: 50, token: 2 }), 1],
    ['have the token of the one before', holds({ from: 0, token: 5 }, { from: 150, token: 5 }), 1],
    ['are of a grant that was answered late and counts beside the next one', holds({ from: 900, to: 1_500, asked: 0 }, { from: 1_000 }), 1],
    ['are of a dead holder, and the next one when its lease is over', all(dies(10, 500), holds({ from: 520, token: 2 })), 0],
    ['are of a dead holder, and the next one before its lease is over', all(dies(10, 500), holds({ from: 400, token: 2 })), 1],
    ['refuse a try while another one has the key', all(holds(...pair), refused(200)), 0],
    ['refuse a try though a release was confirmed', all(holds(...pair), refused(300)), 1],
    ['refuse a try after a crash, which may undo a release', all(holds(...pair), fault('', 'restart', 260, 261), refused(300)), 0],
    ['refuse a try after a crash that came before', all(holds(...pair), fault('', 'restart', 2, 3), refused(300)), 1],
    ['refuse a try for several keys, one of which is taken', all(holds(...pair), refused(300, { kind: 'multi', keys: ['a', 'b'] })), 0],
    ['refuse a try while somebody waits', all(holds(...pair), refused(300), waits(290, 400)), 0],
    ['refuse a try after a holder has died', all(dies(10, 500), refused(900)), 0],
    ['refuse a try though the store was made to forget', all(holds(...pair), refused(300)), 0, LOSS],
  ]);
});

describe('overlap: two claims of one key', () => {
  const permits = (from: number, count: number): Holding => ({ from, mode: 'permits', count, permits: 3 });
  const jumps = all(fault(JUMPED, 'clock-member', 1_000, 1_500), holds({ from: 2_000, to: 2_500 }, { from: 2_400, to: 2_600 }));

  const restored = fault(RESTORED, 'loss', 1_000, 3_000);
  const afterRestore = (from: number) => all(restored, holds({ from, to: from + 500 }, { from: from + 400 }));

  judges(overlap, [
    ['follow one another', holds({ from: 0, to: 100 }, { from: 100 }), 0],
    ['overlap', holds({ from: 0, to: 100 }, { from: 90 }), 1],
    ['overlap where the store was made to forget', holds({ from: 0, to: 100 }, { from: 90 }), 0, LOSS],
    ['overlap beside the jump of one member', jumps, 1, LOSS],
    ['overlap when one member has jumped since the first one asked', all(jumps, fault(JUMPED, 'clock-member', 2_100, 2_200)), 0, LOSS],
    ['overlap before all have noticed that the store was restored', afterRestore(5_000), 0, LOSS],
    ['overlap when all have noticed it', afterRestore(6_000), 1, LOSS],
    ['take too many permits before all have noticed it', all(restored, holds(permits(5_000, 2), permits(5_050, 2))), 0, LOSS],
    ['take too many permits when all have noticed it', all(restored, holds(permits(6_000, 2), permits(6_050, 2))), 1, LOSS],
    [
      'overlap after a member was emptied',
      all(fault(EMPTIED, 'clock-member', 4_650), holds({ from: 5_000, to: 5_500 }, { from: 5_400 })),
      0,
      LOSS,
    ],
    ['where the first one was over by its own clock', holds({ from: 0, to: 5_000, remaining: 1_000 }, { from: 1_000 }), 0],
    [
      'where the first one was claimed again meanwhile',
      (story) => {
        const id = story.hold({ from: 0, to: 5_000, remaining: 1_000 });
        story.add(900, { e: 'claim', id, remaining: [800] }).hold({ from: 1_000 });
      },
      1,
    ],
    [
      'overlap also when the holder was killed: the store cannot know that',
      all((story) => story.grant(0, story.ask(-1, { w: 'w1.1' })), killed('w1.1', 10), holds({ from: 500 })),
      1,
    ],
    ['within one call chain', (story) => story.hold({ from: 10, to: 50, chain: story.hold({ from: 0, to: 100 }) }), 0],
    ['of two readers', holds({ from: 0, mode: 'read' }, { from: 50, mode: 'read' }), 0],
    ['of a reader and a writer', holds({ from: 0, mode: 'read' }, { from: 60 }), 1],
    ['of as many permits as there are', holds(permits(0, 2), permits(10, 1)), 0],
    ['of more permits than there are', holds(permits(0, 2), permits(10, 1), permits(20, 1)), 1],
  ]);

  it('are named', () => {
    const story = new Story();
    holds({ from: 0, to: 100 }, { from: 90 })(story);
    expect(found(overlap, story)).toEqual(['w0.1-2 (alone, token 2) is granted 10.0 ms before w0.1-1 (alone, token 1) ends']);
  });
});

describe('lost update', () => {
  const write =
    (t: number, id: string, read: number, done = t): Tell =>
    (story) =>
      story.add(t, { e: 'wrote', id, key: 'a', read, readAt: t - 1, remaining: 100, done });

  judges(lostUpdate, [
    ['two writes, one over the value of the other', all(write(10, 'x', 1), write(20, 'y', 2)), 0],
    ['two valid writes over the same value', all(write(10, 'x', 2), write(20, 'y', 2)), 1],
    ['a write whose process was stopped after its check', all(write(10, 'x', 1), write(20, 'late', 1, 500), write(600, 'y', 1)), 0],
  ]);

  const exact = { key: 'a', counter: 5, accepted: 5, damaged: 0 };
  const fenced = (counter: object): Facts => ({ ...LOSS, fenced: [{ ...exact, ...counter }] });
  judges(fence, [
    ['a fenced counter that is exact', () => undefined, 0, fenced({})],
    ['a fenced counter that lost an update', () => undefined, 1, fenced({ counter: 4 })],
    ['a fenced counter that is damaged', () => undefined, 1, fenced({ damaged: 1 })],
  ]);
});

describe('tokens', () => {
  const after7 = (token: number | null, mode: Holding['mode'] = 'alone') => holds({ from: 0, token: 7 }, { from: 200, token, mode });
  const forgotten = holds(
    { from: 0, token: 1, owner: 'old' },
    { from: 50, token: 10, owner: 'new' },
    { from: 100, token: 2, owner: 'old' },
  );

  judges(tokens, [
    ['that grow', after7(8), 0],
    ['that repeat', after7(7), 1],
    ['that fall', after7(6), 1],
    ['that are none', after7(null), 1],
    ['that are no safe integers', after7(2 ** 60), 1],
    ['of a reader, as that of the last write', after7(7, 'read'), 0],
    ['of a reader, below that of the last write', after7(6, 'read'), 1],
    ['of an owner that the store forgot, below those of the next one', forgotten, 0, LOSS],
    ['of the next owner, below that', all(forgotten, holds({ from: 200, token: 3, owner: 'newest' })), 1, LOSS],
  ]);
});

describe('early loss', () => {
  const lose =
    (at: number, remaining: number, terms: object = {}): Tell =>
    (story) => {
      const id = story.ask(-1, terms);
      story.grant(0, id, { remaining });
      story.add(at, { e: 'signal', id, reason: 'LockLostError: …' });
    };
  const releasesInVain =
    (...remaining: number[]): Tell =>
    (story) => {
      const id = story.ask(-1);
      const leases = remaining.map((ms, i) => ({ key: 'ab'[i]!, token: 1, owner: id, remaining: ms }));
      story.add(0, { e: 'granted', id, leases });
      story.add(10, { e: 'releasing', id }).add(11, { e: 'released', id, ours: false });
    };
  const emptied = (at: number) => all(fault(EMPTIED, 'restart', at), lose(at + 1_000, 6_000, { keyTimeout: 6_000 }));

  judges(earlyLoss, [
    ['before the end of the lease', lose(500, 1_000), 1],
    ['before the end of the lease, where the store was made to forget', lose(500, 1_000), 0, LOSS],
    ['at the end of the lease', lose(1_000, 1_000), 0],
    ['by a maxHold', lose(500, 1_000, { maxHold: 500 }), 0],
    ['because an operator took it away', all(lose(500, 1_000), force(400, 490)), 0],
    ['because an operator took it away before the answer came', all(force(-1, -0.5), lose(500, 1_000)), 0],
    ['because an operator took it away before it was asked for', all(force(-50, -2), lose(500, 1_000)), 1],
    ['because an operator took another key away', all(lose(500, 1_000), force(400, 490, 'forced', 'b')), 1],
    ['before an operator took it away', all(lose(500, 1_000), force(501, 600)), 1],
    ['because a member of a quorum forgot it before its first renewal', emptied(1_000), 0],
    ['because a member of a quorum forgot it later', emptied(4_000), 1],
    ['because its release was answered so', releasesInVain(1_000), 1],
    ['because another lease, taken together with it, was over before', releasesInVain(200, 0), 0],
  ]);
});

describe('wait timeout: a call', () => {
  const answered =
    (at: number): Tell =>
    (story) =>
      story.grant(at, story.ask(0, { patience: 1_000 }));
  const aborted =
    (terms: object): Tell =>
    (story) => {
      const id = story.ask(0, terms);
      story.add(100, { e: 'aborting', id }).add(900, { e: 'ended', id, outcome: 'aborted', error: '' });
    };
  const unanswered: Tell = (story) => story.ask(0, { patience: 1_000 });

  judges(patience, [
    ['that is answered by its wait timeout and one requestTimeout', answered(1_900), 0],
    ['that is answered later', all(answered(2_600), calm(3_000)), 1],
    ['that is never answered', all(unanswered, calm(3_000)), 1],
    [
      'that has so much longer as its process stood still',
      all(answered(2_600), (story) => story.add(1_500, { e: 'lag', ms: 600 }), calm(3_000)),
      0,
    ],
    ['that is aborted, and does not end at once', aborted({}), 1],
    ['of a candidate that is aborted, and releases its last term first', aborted({ kind: 'leader' }), 0],
    ['of a killed process', all(unanswered, killed('w0.1', 500), calm(9_000)), 0],
  ]);
});

describe('idle key: a key with a waiter', () => {
  const dead = all((story) => story.grant(0, story.ask(-1, { w: 'w1.1', keyTimeout: 3_000 }), { remaining: 3_000 }), killed('w1.1', 10));
  const next = holds({ asked: 50, from: 4_000 });
  const keeps = (minHold: number) => holds({ from: 1, to: 100, minHold }, { asked: 50, from: 30_000 });

  judges(idleKey, [
    ['is taken within two retryIntervals', holds({ from: 0, to: 100 }, { asked: 50, from: 300 }), 0],
    ['is idle for longer', holds({ from: 0, to: 100 }, { asked: 50, from: 2_000 }), 1],
    ['is idle for a keyTimeout and a second after its holder was killed', all(dead, next), 0],
    ['is idle for longer after that', all(dead, next, holds({ asked: 4_010, from: 30_000 })), 1],
    ['is idle after an operator took it away', all(holds({ from: 0, to: 100 }, { asked: 50, from: 1_700 }), force(90, 110)), 0],
    [
      'is idle after an operator found it changed',
      all(holds({ from: 0, to: 100 }, { asked: 50, from: 1_700 }), force(90, 110, 'changed')),
      1,
    ],
    ['is idle during a fault', all(holds({ from: 0, to: 100 }, { asked: 50, from: 6_100 }), fault('x', 'server', 100, 5_000)), 0],
    ["is kept by a minHold, and the server's clock was set back", all(keeps(50), fault('x', 'clock-server', 0, 110)), 0],
    ["is idle for long after the server's clock was set back", all(keeps(0), fault('x', 'clock-server', 0, 110)), 1],
  ]);
});

describe('latch: a wait', () => {
  const common = { e: 'latch' as const, key: 'l', round: 1, patience: 60_000, retryInterval: 100, requestTimeout: 1_000 };
  const opens =
    (at: number): Tell =>
    (story) => {
      story.add(0, { ...common, id: 's', op: 'set', count: 2 }).add(1, { e: 'latched', id: 's', result: 'true' });
      story.add(2, { ...common, id: 'a', op: 'await', count: 0 }).add(at, { e: 'latched', id: 'a', result: 'open' });
      for (const [i, id] of ['d', 'e'].entries())
        story.add(100 + i, { ...common, id, op: 'down', count: 0 }).add(110 + i, { e: 'latched', id, result: String(1 - i) });
      calm(20_000)(story);
    };
  const setAgain =
    (at: number): Tell =>
    (story) =>
      story.add(at, { ...common, id: 't', op: 'set', round: 2, count: 1 }).add(at + 1, { e: 'latched', id: 't', result: 'true' });

  judges(latch, [
    ['that ends when the latch is counted down', opens(111), 0],
    ['that ends before', opens(100.5), 1],
    ['that ends long after', opens(5_000), 1],
    ['that ends long after, and the latch was set again before it could look', all(setAgain(300), opens(5_000)), 0],
    ['that ends long after, and the latch was set again when it should have ended', all(setAgain(3_000), opens(5_000)), 1],
  ]);
});

describe('nothing left', () => {
  const closing: Tell = (story) => story.add(0, { e: 'closing', bound: 1_000 });
  const closed = (at: number) => all(closing, (story) => story.add(at, { e: 'closed' }));
  const left =
    (...resources: string[]): Tell =>
    (story) =>
      story.add(200, { e: 'left', resources, listeners: resources });
  const queued: Facts = { ...NO_LOSS, leftovers: [{ key: 'q', what: 'q', owners: ['x@y:1:u'] }] };
  const refused: Tell = (story) => story.add(0, { e: 'event', name: 'unknown', key: 'a', detail: 'leave of x@y:1:u: Redis: NOPERM …' });

  judges(nothingLeft, [
    ['in a worker or in the store', all(closed(100), left()), 0],
    ['but a timer and a listener', all(closed(100), left('Timeout ×2')), 2],
    ['but a key', all(closed(100), left()), 1, { ...NO_LOSS, leftovers: [{ key: 'a', what: 'a: a string' }] }],
    ['by a worker that is closed late', closed(5_000), 1],
    ['by a worker that is never closed', closing, 1],
    ['but a queue entry', () => undefined, 1, queued],
    ['but the queue entry of an owner that was not allowed to leave', refused, 0, queued],
    ['but the queue entry of an owner whose leave may be lost with the server', fault('server restarted', 'restart', 0, 10), 0, queued],
  ]);
});

const offer = { owner: 'x@y:1:o', count: 1, endsAt: 90, ttl: 50, token: null, inbox: 'in' };
const entry = { owner: 'x@y:1:u', inbox: 'in', offer: 50, count: 1, rank: 0 as const, since: 0 };
const record: LeaseRecord = { kind: 'mutex', permits: 1, holds: [], queue: [entry], queueEndsAt: 200 };

it.each<[string, Partial<LeaseRecord>, number]>([
  ['the entry of a live process', {}, 1],
  ['a entry beside an offer to another process that nobody has confirmed', { holds: [{ ...offer, inbox: 'other' }] }, 1],
  ['no entry of a process that has not confirmed an offer: all skip it', { holds: [offer] }, 0],
  ['no entry in a queue that is over', { queueEndsAt: 100 }, 0],
  ['a lease that lasts', { holds: [{ ...offer, endsAt: 110 }] }, 1],
])('what is left in a row %s', (_, change, count) => {
  const row = { key: 'a', record: JSON.stringify({ ...record, ...change }), endsAt: 200 };
  expect(leftoversIn([row], 100, new Set())).toHaveLength(count);
});

const hold = (owner: string, count: number, endsAt = 110) => ({ owner, count, endsAt, ttl: 50, token: 1 as number | null });
const [one, same, other] = ['x@y:1:a', 'x@y:1:b', 'x@y:2:c'];

it.each<[string, number, boolean, LeaseRecord['holds']]>([
  ['are too many: two of a mutex', 1, false, [hold(one, ALL), hold(other, ALL)]],
  ['are too many: a reader beside the writer of another process', 1, false, [hold(one, ALL), hold(other, 1)]],
  ['are too many: four permits of three', 1, true, [hold(one, 2), hold(other, 2)]],
  ['may be a reader and the writer of one process', 0, false, [hold(one, ALL), hold(same, 1)]],
  ['may be readers', 0, false, [hold(one, 1), hold(other, 1)]],
  ['may be more than the last caller of a semaphore has named, where not all callers were seen', 0, false, [hold(one, 2), hold(other, 2)]],
  ['are no more when they have ended', 0, false, [hold(one, ALL, 90), hold(other, ALL)]],
  ['are not those that are offered the key', 0, false, [hold(one, ALL), { ...hold(other, ALL), token: null }]],
])('the holders in a row %s', (_, count, seesAll, holds) => {
  const record: LeaseRecord = { kind: 'mutex', permits: 3, holds, queue: [], queueEndsAt: 0 };
  const row = { key: 'a', record: JSON.stringify(record), endsAt: 200 };
  expect(new RowExclusion(seesAll).look(row, 100, 0)).toHaveLength(count);
});

describe('trouble', () => {
  const ended =
    (outcome: 'internal' | 'config' | 'final' | 'aborted' | 'shutdown'): Tell =>
    (story) =>
      story.add(1, { e: 'ended', id: story.ask(0), outcome, error: '' });

  judges(trouble, [
    ...(['internal', 'config', 'final', 'aborted', 'shutdown'] as const).map((outcome): Row => [
      `a call that ended as "${outcome}"`,
      ended(outcome),
      1,
    ]),
    ['an operator who gets an internal error', force(0, 1, 'internal: TypeError'), 1],
    ['an unhandled rejection', (story) => story.add(0, { e: 'trouble', what: 'unhandled rejection', detail: 'Error' }), 1],
    ['a process that ended by itself', (story) => story.add(1, { e: 'exit', worker: 'w0.1', expected: false, detail: 'code 1' }), 1],
  ]);
});
