import { afterTurns, mayTake, passTime } from '../../support/virtual-time.js';
import { LockConfigError, QuorumError, StoreError } from 'nestjs-distributed-lock/core';
import { acquireOutcome, checkOutcome, finalError, majorityOf, wordOutcome, type Vote } from '../../../lib/stores/quorum/quorum.votes.js';
import type { AcquireReply, CheckReply, WakeUps } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { now } from '../../../lib/core/util/clock.js';
import { Member } from '../../../lib/stores/quorum/quorum.member.js';
import { queueLockOf } from '../../../lib/stores/quorum/quorum.queue-lock.js';
import { QuorumWakeUps } from '../../../lib/stores/quorum/quorum.wakeups.js';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { rejection } from '../../support/rejection.js';
import { altered, nextTurn, request, three } from './members.js';

afterTurns(10);
mayTake(60_000);

const silent = new StoreError('silent', { transient: true });
const refused = new StoreError('NOAUTH', { transient: false });
const misused = new LockConfigError('another kind');
const yes = (token: number | null): AcquireReply => ({ granted: true, token });
const no = (holder: string | null, remaining = 100): AcquireReply => ({ granted: false, remaining, holder, ahead: 0 });

/** All lists of so many of these. */
function* listsOf<T>(choices: readonly T[], length: number): Generator<T[]> {
  if (length === 0) return yield [];
  for (const rest of listsOf(choices, length - 1)) for (const choice of choices) yield [choice, ...rest];
}

const isYes = (vote: Vote<AcquireReply>): vote is Extract<AcquireReply, { granted: true }> =>
  vote !== undefined && 'granted' in vote && vote.granted;

it.each([
  [3, 2],
  [4, 3],
  [5, 3],
  [6, 4],
  [7, 4],
])('of %d members, %d are a majority: any two of that size have one in common', (count, majority) => {
  expect(majorityOf(count)).toBe(majority);
  expect(2 * majority).toBeGreaterThan(count);
  expect(2 * (majority - 1)).toBeLessThanOrEqual(count);
});

describe.each([3, 4, 5])('the outcome of an acquire at %d members', (count) => {
  const majority = majorityOf(count);
  const choices: Vote<AcquireReply>[] = [undefined, yes(5), yes(9), no('X'), no('Y'), silent];
  const all = [...listsOf(choices, count)];

  it('is a grant only by a majority: one has recorded the token or a larger one, and one gave no larger token at first', () => {
    let granted = 0;
    for (const votes of all) {
      const outcome = acquireOutcome(votes);
      const tokens = votes.filter(isYes).map(({ token }) => token!);
      if (outcome?.kind !== 'granted') continue;
      granted++;
      const { token } = outcome;
      expect(tokens.filter((each) => each >= token!).length).toBeGreaterThanOrEqual(majority);
      expect(tokens.filter((each) => each <= token!).length).toBeGreaterThanOrEqual(majority);
    }
    expect(granted).toBeGreaterThan(0);
  });

  it('is the token that is to be recorded, or a larger one, once a majority has recorded it', () => {
    for (const votes of all) {
      const outcome = acquireOutcome(votes, 9);
      const recorded = votes.filter((vote) => isYes(vote) && vote.token! >= 9).length;
      expect(outcome?.kind).not.toBe('raise');
      expect(outcome?.kind === 'granted').toBe(recorded >= majority);
    }
  });

  it('is certain when nobody is asked any more, but where a token must be recorded', () => {
    for (const votes of listsOf(choices.slice(1), count)) expect(acquireOutcome(votes)).toBeDefined();
  });

  it('is certain only if no answer that is missing could change it', () => {
    for (const votes of all) {
      const outcome = acquireOutcome(votes);
      if (outcome?.kind !== 'taken' && outcome?.kind !== 'silent') continue;
      const missing = votes.indexOf(undefined);
      if (missing < 0) continue;
      for (const vote of choices.slice(1)) expect(acquireOutcome(votes.with(missing, vote))?.kind).toBe(outcome.kind);
    }
  });

  it('is contention by a majority of answers, an outage by fewer, never the other way round', () => {
    for (const votes of listsOf(choices.slice(1), count)) {
      const answers = votes.filter((vote) => vote !== silent).length;
      const kind = acquireOutcome(votes)?.kind;
      if (kind === 'taken') expect(answers).toBeGreaterThanOrEqual(majority);
      if (kind === 'silent') expect(answers).toBeLessThan(majority);
    }
  });

  it('is split only where votes are ours and no other owner has a majority', () => {
    for (const votes of all) {
      const outcome = acquireOutcome(votes);
      if (outcome?.kind !== 'taken') continue;
      const ofX = votes.filter((vote) => vote === choices[3]).length;
      const ofY = votes.filter((vote) => vote === choices[4]).length;
      expect(outcome.isSplit).toBe(votes.some(isYes) && Math.max(ofX, ofY) < majority);
    }
  });
});

describe('a refusal', () => {
  it('names the owner that most members name, and when a majority will be free', () => {
    const outcome = acquireOutcome([no('X', 300), no('Y', 100), no('X', 500)]);
    expect(outcome).toMatchObject({ kind: 'taken', reply: { holder: 'X', remaining: 300 }, isSplit: false });
    expect(acquireOutcome([no('X', -1), no('X', -1), yes(1)])).toMatchObject({ reply: { remaining: -1 } });
  });

  it('of members that have the key as another kind of lock is a mistake, unless more of them have it as this one', () => {
    expect(acquireOutcome([misused, misused, misused])).toMatchObject({ kind: 'misused', error: misused });
    expect(acquireOutcome([misused, no('X'), no('X')])).toMatchObject({ kind: 'taken' });
    expect(acquireOutcome([misused, yes(1), yes(1)])).toMatchObject({ kind: 'granted' });
  });
});

it('a member without tokens makes a lease without one', () => {
  expect(acquireOutcome([yes(3), yes(null), undefined])).toEqual({ kind: 'granted', token: null });
});

it.each([3, 4, 5])('a renewal at %d members: renewed by a majority, lost where that cannot be, else unknown', (count) => {
  const majority = majorityOf(count);
  for (const votes of listsOf([undefined, 'renewed', 'lost', silent] as const, count)) {
    const numberOf = (word: unknown) => votes.filter((vote) => vote === word).length;
    const outcome = wordOutcome(votes, 'renewed', 'lost');
    if (numberOf('renewed') >= majority) expect(outcome).toBe('renewed');
    else if (numberOf('lost') > count - majority) expect(outcome).toBe('lost');
    else if (numberOf(undefined) === 0) expect(outcome).toBe('silent');
    else expect(['silent', undefined]).toContain(outcome);
  }
});

it('errors that no retry can help are final only where the other members are too few', () => {
  expect(finalError([refused, silent, yes(1)])).toBeUndefined();
  expect(finalError([refused, refused, yes(1)])).toBe(refused);
  expect(finalError([refused, refused, yes(1), yes(1), silent])).toBeUndefined();
});

it('a check is held, free or taken by a majority', () => {
  const of = (state: CheckReply['state'], holder: string | null, remaining: number, token: number | null): CheckReply => ({
    state,
    holder,
    remaining,
    token,
  });
  const free = of('free', null, 0, null);
  expect(checkOutcome([of('held', 'a', 50, 9), of('held', 'a', 90, 12), of('taken', 'b', 10, 5)], 3, false)).toEqual(
    of('held', 'a', 50, 9),
  );
  expect(checkOutcome([free, free, of('taken', 'b', 10, 5)], 3, false)).toEqual(free);
  expect(checkOutcome([free, of('taken', 'b', 10, 5), of('taken', 'b', 20, 5)], 3, false)).toEqual(of('taken', 'b', 10, 5));
  expect(checkOutcome([of('taken', 'b', 10, 5), of('taken', 'b', 20, 5), free], 3, true).state).toBe('queued');
});

describe('a request to a member that did not answer', () => {
  let member: Member;
  beforeEach(() => {
    member = new Member(memoryStore(), 'member 1', 0, () => undefined);
  });
  afterEach(() => member.close());

  /** Whether the request of each owner was sent again; `undefined`: not yet. */
  function waiting(ends: readonly number[]): (boolean | undefined)[] {
    const outcomes: (boolean | undefined)[] = ends.map(() => undefined);
    for (const [index, end] of ends.entries()) {
      const sent = member.sendAgain({ key: 'key', owner: `owner ${index}` }, end, () => Promise.resolve((outcomes[index] = true)));
      void sent.catch(() => (outcomes[index] = false));
    }
    return outcomes;
  }

  it('is sent again with the next answer to another one, or after a second', async () => {
    const outcomes = waiting([1, 2, 3].map(() => now() + 60_000));
    await passTime(500);
    expect(outcomes).toEqual([undefined, undefined, undefined]);
    await member.send('key', () => Promise.resolve());
    await nextTurn();
    expect(outcomes).toEqual([true, true, true]);
    const later = waiting([now() + 60_000]);
    await passTime(1_000);
    expect(later).toEqual([true]);
  });

  it('is not sent again when what it would end has expired, or when its owner has a later one', async () => {
    const outcomes = waiting([now() + 300, now()]);
    await passTime(1_500);
    expect(outcomes).toEqual([false, false]);
    const replaced = waiting([now() + 60_000]);
    await member.sendInOrder({ key: 'key', owner: 'owner 0' }, () => Promise.resolve());
    expect(replaced).toEqual([false]);
  });

  it('is given up where a thousand later ones wait, and when the member is closed', async () => {
    const outcomes = waiting(Array.from({ length: 1_002 }, () => now() + 60_000));
    await nextTurn();
    expect(outcomes.indexOf(undefined)).toBe(2);
    expect(outcomes.slice(0, 2)).toEqual([false, false]);
    await member.close();
    expect(outcomes).toEqual(Array(1_002).fill(false));
  });
});

const tenancy = { key: 'key', owner: 'owner' };
it.each([
  ['for its key', tenancy],
  ['for its queue lock', queueLockOf(tenancy)],
])(
  'listens for an owner until a member has answered the last request %s: without it, the member does not find its entry',
  async (_, asked) => {
    const stopped: string[] = [];
    const inbox = { isOpen: true, listen: (owner: string) => () => void stopped.push(owner) } as unknown as WakeUps;
    const member = new Member(memoryStore(), 'member 1', 0, () => undefined);
    let answer!: () => void;
    void member.sendInOrder(asked, () => new Promise<void>((resolve) => (answer = resolve)));
    const stop = new QuorumWakeUps([member], [inbox]).listen(tenancy.owner, () => undefined);
    stop();
    await nextTurn();
    expect(stopped).toEqual([]);
    answer();
    await nextTurn();
    expect(stopped.sort()).toEqual([tenancy.owner, queueLockOf(tenancy).owner]);
  },
);

it('a lease that ends without a release is forgotten, but not while it is renewed', async () => {
  const { mutex } = quorumStore(three(), { quarantine: 0 });
  const { leases } = (mutex as unknown as { leases: { leases: Map<string, unknown> } }).leases;
  expect(await mutex.acquire({ ...request, ttl: 15_000 })).toMatchObject({ granted: true });
  await passTime(12_000);
  expect(await mutex.renew([{ ...request, ttl: 15_000 }])[0]).toBe('renewed');
  await passTime(10_000);
  expect(leases.size).toBe(1);
  await passTime(20_000);
  expect(await mutex.acquire({ ...request, ttl: 15_000, owner: 'b' })).toMatchObject({ granted: true });
  expect([...leases.keys()]).toEqual(['b']);
  await mutex.release({ key: 'key', owner: 'b', keepFor: 0 });
  expect(leases.size).toBe(0);
});

it('an owner whose votes are split leaves the queue of a member that refused it: two of them would only exchange their votes', async () => {
  const left: string[] = [];
  const [free, taken, silent] = three();
  const refusing = altered(taken, (real) => ({
    leave: (tenancy) => {
      left.push(tenancy.owner);
      return real.leave(tenancy);
    },
  }));
  const hung = altered(silent, () => ({ acquire: () => new Promise(() => undefined) }));
  await taken.mutex.acquire({ ...request, owner: 'other' });
  const { mutex } = quorumStore([free, refusing, hung], { quarantine: 0, memberTimeout: 50 });
  void mutex.acquire({ ...request, queue: true }).catch(() => undefined);
  await passTime(90);
  expect(left).toEqual(['a']);
});

it('many leases are renewed in parts, between which other work goes on; one that members cannot renew fails alone', async () => {
  const parts: number[] = [];
  const members = three().map((store, index) =>
    altered(store, (real) => ({
      renew: (batch) => {
        if (index === 0) parts.push(batch.length);
        const failed = Promise.reject<'renewed'>(new StoreError('full', { transient: true }));
        failed.catch(() => undefined);
        return real.renew(batch).map((reply, at) => (index > 0 && batch[at]!.owner === 'owner 300' ? failed : reply));
      },
    })),
  );
  const { mutex } = quorumStore(members, { quarantine: 0 });
  const all = Array.from({ length: 600 }, (_, index) => ({ ...request, key: `key ${index}`, owner: `owner ${index}` }));
  await Promise.all(all.map((each) => mutex.acquire(each)));
  const replies = mutex.renew(all);
  expect(parts).toEqual([256]);
  const words = await Promise.allSettled(replies);
  expect(parts).toEqual([256, 256, 88]);
  expect(words.flatMap(({ status }, index) => (status === 'rejected' ? index : []))).toEqual([300]);
  await expect(replies[300]).rejects.toThrow(QuorumError);
});

it('a key for which members hang holds up the renewals of no other one, and its error names no other one', async () => {
  const [free, ...others] = three();
  const hanging = others.map((store) =>
    altered(store, (real) => ({
      renew: (batch) => real.renew(batch).map((reply, at) => (batch[at]!.key === 'hangs' ? new Promise<never>(() => undefined) : reply)),
    })),
  );
  const { mutex } = quorumStore([free, ...hanging], { quarantine: 0, memberTimeout: 100 });
  const leases = ['key', 'hangs'].map((key) => ({ ...request, key, owner: key }));
  for (const lease of leases) await mutex.acquire(lease);
  const [renewal, outage] = mutex.renew(leases);
  const error = await rejection(outage!);
  expect(await renewal).toBe('renewed');
  expect((error as QuorumError).votes).toEqual(['renewed', ...hanging.map(() => expect.objectContaining({ key: 'hangs' }))]);
});

it('a ballot has an end, also if a member never gives the token that it is asked for', async () => {
  let asked = 0;
  const [one, ...others] = three();
  const stubborn = altered(one, () => ({
    async acquire() {
      if (++asked > 100) throw new Error('It is asked again and again.');
      return yes(1);
    },
  }));
  const { mutex } = quorumStore([stubborn, ...others], { quarantine: 0, memberTimeout: 100 });
  expect(await mutex.acquire(request)).toMatchObject({ granted: true });
  await passTime(1_000);
  expect(asked).toBe(1);
});

it('a yes that comes after the outcome is released', async () => {
  const answers: (() => void)[] = [];
  const [one, two, late] = three();
  const slow = altered(late, (real) => ({
    acquire: (asked) => new Promise((resolve) => answers.push(() => void real.acquire(asked).then(resolve))),
  }));
  for (const store of [one, two]) await store.mutex.acquire({ ...request, owner: 'holder' });
  const { mutex } = quorumStore([one, two, slow], { quarantine: 0 });
  expect(await mutex.acquire(request)).toMatchObject({ granted: false, holder: 'holder' });
  answers[0]!();
  await passTime(50);
  expect((await late.mutex.check(request)).state).toBe('free');
});
