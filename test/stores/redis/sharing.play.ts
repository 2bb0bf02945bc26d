import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { lua } from '../../../lib/stores/redis/scripts/redis.script.js';
import { type EntryOf, keysOf, LeasePlay, OFFER, repliesOf, type StepOf } from './lease.play.js';
import { CALLERS, LATE, LATE_WITHOUT, leaseSteps, series, type AcquireStep, type Disturbance, type LeaseStep } from './model.steps.js';
import { type Caller } from './queue.model.js';
import { playsLikeItsModel, type Ear, type Parts } from './script.play.js';
import { SharedLock, SharingModel, WHOLE, type ExpectedReply, type SharingRequest } from './sharing.model.js';

const KINDS = { doc: 'read/write lock', pool: 'semaphore' } as const;
type Key = keyof typeof KINDS;
const KEYS = Object.keys(KINDS) as Key[];

/** What a caller always asks for: one owner has one wish. */
const WISHES = new Map(
  CALLERS.map((caller, n) => [caller, { writes: n % 3 === 0, rank: { doc: n > 4 ? 1 : 0, pool: 0 } as const, permits: 1 + (n % 3) }]),
);

WISHES.set(LATE_WITHOUT, WISHES.get(LATE)!);

type OwnStep =
  | LeaseStep<Key>
  | AcquireStep<Key, { permits: number; beside: 'nobody' | 'holder' | 'stranger' }>
  | { type: 'expire'; key: Key; all: boolean; which: number };

const { key, request, common, batchOf, of } = leaseSteps(KEYS);

const stepsWith = (permits: fc.Arbitrary<number>) =>
  series<OwnStep | Disturbance>(
    {
      weight: 12,
      arbitrary: fc.record({
        type: of('acquire'),
        batch: batchOf(fc.record({ ...request, permits, beside: fc.constantFrom('nobody', 'nobody', 'nobody', 'holder', 'stranger') })),
      }),
    },
    { weight: 3, arbitrary: fc.record({ type: of('expire'), key, all: fc.boolean(), which: fc.nat(5) }) },
    ...common,
  );

/** The number of permits never changes, or all the time. */
const steps = fc.oneof(stepsWith(fc.constant(3)), stepsWith(fc.constantFrom(3, 3, 3, 4, 5)));

class SharingPlay extends LeasePlay<Key, SharingModel, OwnStep> {
  /** The largest number of permits that was asked with: who was offered his when there were more may keep it when there are fewer. */
  private readonly most = new Map<string, number>();
  protected readonly believing = new Map<string, Map<string, { count: number; beside: string }>>(KEYS.map((key) => [key, new Map()]));

  constructor(redis: Redis, ear: Ear) {
    super(redis, ear, new SharingModel(KEYS, SharedLock, OFFER));
  }

  /** Everybody gives up, and whatever is kept runs out. */
  override async end(): Promise<void> {
    for (const key of KEYS) {
      await this.step({ type: 'release', batch: CALLERS.map((by) => ({ key, by, keepFor: 0, leaves: true })) });
      await this.step({ type: 'expire', key, all: true, which: 0 });
    }
    for (const name of await this.redis.keys('*')) expect(KEYS.map((key) => `{${key}}:fence`)).toContain(name);
  }

  protected async play(step: OwnStep): Promise<void> {
    if (step.type !== 'expire') return this.send(lua(`sharing/${step.type}`, 3_600_000), this[step.type](step as never));
    const holders = [...this.model.at(step.key).holders.keys()];
    for (const holder of step.all ? holders : holders.slice(step.which, step.which + 1)) await this.expire(step.key, holder);
  }

  /** As if its end had come: the server drops the key with the last of them. */
  private async expire(key: Key, holder: string): Promise<void> {
    this.model.expire(key, holder);
    this.believing.get(key)!.delete(holder);
    await this.redis.zadd(key, 'XX', 1, holder);
    const [, last] = await this.redis.zrange(key, '-1', '-1', 'WITHSCORES');
    if (Number(last) === 1) await this.redis.del(key);
    else await this.redis.pexpireat(key, Number(last));
  }

  private acquire({ batch }: StepOf<OwnStep, 'acquire'>): Parts {
    const requests = batch.map(({ beside, permits, ahead, ...given }) => {
      const request = { ...given, caller: this.present(given.caller), floor: this.floorOf(given.key, ahead) };
      const { key, caller } = request;
      const { writes, rank, permits: count } = WISHES.get(caller)!;
      const holder = [...this.model.at(key).holders.keys()].find((name) => name !== caller.owner) ?? '';
      const own = beside === 'nobody' || key === 'pool' || writes ? '' : beside === 'holder' ? holder : 'nobody:knows';
      const share = key === 'doc' ? { permits: WHOLE, count: writes ? WHOLE : 1 } : { permits, count };
      return { ...request, ...share, tokens: key === 'doc' && !writes ? 0 : request.tokens, rank: rank[key], beside: own };
    });
    const args = requests.flatMap(({ key, caller, ttl, tokens, floor, queue, permits, rank, beside }) => {
      return [caller.owner, ttl, tokens, floor, permits, this.entryOf(key, caller), queue ? 1 : '', rank, beside];
    });
    return [
      requests.flatMap(({ key }) => keysOf(key)),
      args,
      (given) => {
        const replies = repliesOf(given, requests) as (number | [number, string, number])[];
        for (const [index, request] of requests.entries()) {
          const reply = replies[index]!;
          const expected = this.model.acquire(request);
          this.most.set(request.key, Math.max(request.permits, this.most.get(request.key) ?? 0));
          expect(typeof reply === 'number' ? 'granted' : shown(reply, expected)).toEqual(expected);
          if (typeof reply === 'number') this.granted(request, reply);
        }
      },
    ];
  }

  private granted(request: SharingRequest & { tokens: number; floor: number }, token: number): void {
    const { key, caller, count, beside, tokens, floor } = request;
    const { owner } = caller;
    const believing = this.believing.get(key)!;
    // G2, by what they were told.
    const others = [...believing].filter(([name, other]) => name !== owner && name !== beside && other.beside !== owner);
    const taken = others.reduce((sum, [, other]) => sum + other.count, 0);
    if (!believing.has(owner)) {
      expect(taken + count).toBeLessThanOrEqual(this.most.get(key)!);
      believing.set(owner, { count, beside });
    }
    const last = this.lastTokens.get(key) ?? 0;
    expect(token).toBeGreaterThanOrEqual(floor);
    if (tokens === 0 && last > 0) expect(token).toBe(Math.max(last, floor));
    else expect(token).toBeGreaterThan(last);
    expect(Number.isSafeInteger(token)).toBe(true);
    this.lastTokens.set(key, token + Math.max(tokens, 1) - 1);
  }

  private check({ key, caller: given }: StepOf<OwnStep, 'check'>): Parts {
    const caller = this.present(given);
    return [
      keysOf(key),
      [caller.owner, this.entryOf(key, caller)],
      (reply) => expect((reply as [string])[0]).toBe(this.model.check(key, caller)),
    ];
  }

  protected entryOf(key: Key, caller: Caller): string {
    const { writes, permits } = WISHES.get(caller)!;
    const count = key === 'pool' ? permits : writes ? WHOLE : 1;
    return `${caller.owner}\n${caller.inbox}\n${OFFER}\n${count} ${KINDS[key]}\nheld:before`;
  }

  protected async compare(): Promise<void> {
    const compareKey = async ([key, { holders, permits, queue }]: EntryOf<SharingModel>) => {
      const [members, left, entries] = await Promise.all([
        this.redis.zrange(key, '0', '-1', 'WITHSCORES'),
        this.redis.pttl(key),
        this.redis.zrange(`{${key}}:queue`, '0', '-1'),
      ]);
      const { first, ends, counts } = parsed(members);
      expect(entries).toEqual(queue.map(({ caller }) => this.entryOf(key as Key, caller)));
      for (const { caller } of queue) expect(holders.has(caller.owner)).toBe(false);
      const live = [...ends].filter(([, end]) => end > 1).map(([name]) => name);
      expect(live.sort()).toEqual([...holders.keys()].sort());
      if (holders.size > 0) {
        expect(first[0]).toBe(`${KINDS[key as Key]} ${permits}`);
        expect(first[1]).toBe(-1 - [...ends.keys()].reduce((sum, name) => sum + (counts.get(name) ?? 1), 0));
        expect(rounded(left)).toBe(Math.max(...[...holders.values()].map(({ ttl }) => ttl)));
      }
      const [seconds] = await this.redis.time();
      for (const [name, { count, ttl }] of holders) {
        expect(counts.get(name) ?? 1).toBe(count);
        expect(rounded(ends.get(name)! - Number(seconds) * 1000)).toBe(ttl);
      }
      for (const name of counts.keys()) expect(ends.has(name)).toBe(true);
      for (const name of this.believing.get(key)!.keys()) expect(live).toContain(name);
      await this.compareNames(key);
    };
    await Promise.all([...this.model.locks].map(compareKey));
  }
}

const PERMITS = 'permits:';

function parsed(members: string[]) {
  const pairs = Array.from({ length: members.length / 2 }, (_, i) => [members[2 * i]!, Number(members[2 * i + 1])] as const);
  const [first = ['', 0] as const, ...others] = pairs;
  return {
    first,
    ends: new Map(others.filter(([name]) => !name.startsWith(PERMITS))),
    counts: new Map(
      others.filter(([name]) => name.startsWith(PERMITS)).map(([name, minus]) => [name.slice(PERMITS.length), -minus] as const),
    ),
  };
}

/** As that of other leases, but counted from the start of a second. */
const rounded = (left: number): number => Math.round(left / 20_000 + 0.4) * 20_000;

/** Of several who end together any may be named. */
function shown([left, holder, ahead]: [number, string, number], expected: ExpectedReply) {
  const holders = expected === 'granted' ? [] : expected.holders;
  return { ttl: left === -1 ? left : rounded(left), ahead, holders: holders.includes(holder) ? holders : [holder] };
}

export const sharingPlay = playsLikeItsModel('the scripts of locks that several hold', steps, (redis, ear) => new SharingPlay(redis, ear));
