import type { Redis } from 'ioredis';
import { leaseScripts } from '../../../lib/stores/redis/lua.scripts.js';
import type { Ear } from './model.ear.js';
import { CALLERS } from './model.steps.js';
import type { Caller } from './mutex.model.js';
import { playsLikeItsModel, repliesOf, ScriptPlay, type Parts } from './script.play.js';
import { SharingModel, WHOLE, type ExpectedReply, type SharingRequest } from './sharing.model.js';
import { KEYS, KINDS, OFFER, placeOf, steps, WISHES, type Key, type OwnStep } from './sharing.steps.js';

const scripts = leaseScripts(3_600_000).sharing;

class SharingPlay extends ScriptPlay<SharingModel, OwnStep> {
  /** The largest number of permits that was asked with: who was offered his when there were more may keep it when there are fewer. */
  private readonly most = new Map<string, number>();
  private readonly lastTokens = new Map<string, number>();
  /** What whom was told to hold, who has not given it up since: the server is not asked. */
  private readonly believing = new Map<string, Map<string, { count: number; beside: string }>>(KEYS.map((key) => [key, new Map()]));

  constructor(redis: Redis, ear: Ear) {
    super(redis, ear, new SharingModel(KEYS, OFFER));
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
    if (step.type !== 'expire') return this.send(scripts[step.type], this[step.type](step as never));
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

  private acquire({ batch }: StepOf<'acquire'>): Parts {
    const requests = batch.map(({ beside, permits, ahead, ...given }) => {
      const floor = ahead ? Math.max(Date.now() * 1000, this.lastTokens.get(given.key) ?? 0) + 5_000_000 : 0;
      const request = { ...given, caller: this.present(given.caller), floor };
      const { key, caller } = request;
      const { writes, rank, permits: count } = WISHES.get(caller)!;
      const holder = [...this.model.at(key).holders.keys()].find((name) => name !== caller.owner) ?? '';
      const own = beside === 'nobody' || key === 'pool' || writes ? '' : beside === 'holder' ? holder : 'nobody:knows';
      const share = key === 'doc' ? { permits: WHOLE, count: writes ? WHOLE : 1 } : { permits, count };
      return { ...request, ...share, tokens: key === 'doc' && !writes ? 0 : request.tokens, rank: rank[key], beside: own };
    });
    const args = requests.flatMap(({ key, caller, ttl, tokens, floor, queue, permits, rank, beside }) => {
      return [caller.owner, ttl, tokens, floor, permits, placeOf(key, caller), queue ? 1 : '', rank, beside];
    });
    return [
      requests.flatMap(({ key }) => [key, `{${key}}:fence`, `{${key}}:queue`]),
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

  private release({ batch }: StepOf<'release'>): Parts {
    const requests = batch.map(({ by, ...request }) => ({ ...request, caller: this.callerOf(request.key, by) }));
    return [
      requests.flatMap(({ key }) => [key, `{${key}}:queue`]),
      requests.map(({ key, caller, keepFor, leaves }) => {
        if (leaves) return [caller.owner, 0, placeOf(key, caller)].join('\n');
        return keepFor === 0 ? caller.owner : [caller.owner, keepFor, ''].join('\n');
      }),
      (reply) => {
        const expected = requests.map(({ key, caller, keepFor, leaves }) => {
          this.believing.get(key)!.delete(caller.owner);
          return leaves ? this.model.leave(key, caller) : this.model.release(key, caller, keepFor);
        });
        expect(repliesOf(reply, requests)).toEqual(expected);
      },
    ];
  }

  private renew({ ttl, batch }: StepOf<'renew'>): Parts {
    const requests = batch.map(({ key, by }) => ({ key, caller: this.callerOf(key, by) }));
    return [
      requests.map(({ key }) => key),
      [ttl, ...requests.map(({ caller }) => caller.owner)],
      (reply) => expect(repliesOf(reply, requests)).toEqual(requests.map(({ key, caller }) => this.model.renew(key, caller, ttl))),
    ];
  }

  private check({ key, caller: given }: StepOf<'check'>): Parts {
    const caller = this.present(given);
    return [
      [key, `{${key}}:fence`, `{${key}}:queue`],
      [caller.owner, placeOf(key, caller)],
      (reply) => expect((reply as [string])[0]).toBe(this.model.check(key, caller)),
    ];
  }

  private callerOf(key: Key, by: Caller | 'holder'): Caller {
    if (by !== 'holder') return this.present(by);
    const holders = [...this.model.at(key).holders.keys()].map((name) => name.replace('kept:', ''));
    return this.present(CALLERS.find(({ owner }) => holders.includes(owner)) ?? CALLERS[0]!);
  }

  protected async compare(): Promise<void> {
    for (const [key, { holders, permits, queue }] of this.model.locks) {
      const [members, left, places, names] = await Promise.all([
        this.redis.zrange(key, '0', '-1', 'WITHSCORES'),
        this.redis.pttl(key),
        this.redis.zrange(`{${key}}:queue`, '0', '-1'),
        this.redis.keys(`*${key}*`),
      ]);
      const { first, ends, counts } = parsed(members);
      expect(places).toEqual(queue.map(({ caller }) => placeOf(key as Key, caller)));
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
      expect([key, `{${key}}:fence`, `{${key}}:queue`]).toEqual(expect.arrayContaining(names));
      for (const name of names) expect(await this.redis.pttl(name)).toBeGreaterThan(0);
    }
  }
}

type StepOf<T extends OwnStep['type']> = Extract<OwnStep, { type: T }>;

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

/** A run takes far less than the 20 s between two lengths of a lease. */
const rounded = (left: number): number => Math.round(left / 20_000 + 0.4) * 20_000;

/** Of several who end together any may be named. */
function shown([left, holder, ahead]: [number, string, number], expected: ExpectedReply) {
  const holders = expected === 'granted' ? [] : expected.holders;
  return { ttl: left === -1 ? left : rounded(left), ahead, holders: holders.includes(holder) ? holders : [holder] };
}

describe('the scripts of locks that several hold, whatever comes after whatever', () => {
  playsLikeItsModel(steps, (redis, ear) => new SharingPlay(redis, ear));
});
