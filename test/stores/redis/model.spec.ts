import type { Redis } from 'ioredis';
import { leaseScripts } from '../../../lib/stores/redis/lua.scripts.js';
import type { Ear } from './model.ear.js';
import { CALLERS, KEYS, steps, type OwnStep } from './model.steps.js';
import { MutexModel, type Caller, type ExpectedReply } from './mutex.model.js';
import { playsLikeItsModel, repliesOf, ScriptPlay, type Parts } from './script.play.js';

const OFFER = 20_000;
const scripts = leaseScripts(3_600_000).mutex;
const STRANGER = 'a stranger';

class MutexPlay extends ScriptPlay<MutexModel, OwnStep> {
  private readonly lastTokens = new Map<string, number>();
  /** First and last ones that were given in this step. */
  private blocks: { key: string; first: number; last: number; floor: number }[] = [];
  /** Who has been told that a key is theirs, and has not given it up since: the server is not asked. */
  private readonly believing = new Map<string, Set<string>>(KEYS.map((key) => [key, new Set()]));

  constructor(redis: Redis, ear: Ear) {
    super(redis, ear, new MutexModel(KEYS, OFFER));
  }

  protected async play(step: OwnStep): Promise<void> {
    if (step.type === 'expire') {
      if (await this.redis.pexpire(step.key, 1)) while (await this.redis.exists(step.key));
      this.model.vanish(step.key);
      this.believing.get(step.key)!.clear();
    } else if (step.type === 'classic set') {
      const isSet = (await this.redis.set(step.key, STRANGER, 'PX', 60_000, 'NX')) === 'OK';
      expect(isSet).toBe(this.model.setIfFree(step.key, STRANGER, 60_000));
      if (isSet) this.believing.get(step.key)!.add(STRANGER);
    } else if (step.type === 'classic delete') {
      const isOurs = (await this.redis.get(step.key)) === STRANGER;
      if (isOurs) await this.redis.del(step.key);
      if (isOurs) this.model.vanish(step.key);
      this.believing.get(step.key)!.delete(STRANGER);
    } else await this.send(scripts[step.type], this[step.type](step as never));
  }

  private acquire({ batch }: StepOf<'acquire'>): Parts {
    const requests = batch.map(({ yields, ahead, ...given }) => {
      const floor = ahead ? Math.max(Date.now() * 1000, this.lastTokens.get(given.key) ?? 0) + 5_000_000 : 0;
      const request = { ...given, caller: this.present(given.caller), floor };
      // Of one that has given it up too, and stays until its minHold is over: that must not end by a late request.
      const holder = yields === 'holder' ? (this.model.locks.get(request.key)!.holding?.owner ?? '') : '';
      return { ...request, yields: yields === 'stranger' ? 'nobody:knows' : holder === request.caller.owner ? '' : holder };
    });
    const args = requests.flatMap(({ caller, ttl, tokens, floor, queue, yields }) => {
      const isPlain = tokens === 1 && floor === 0 && !queue && yields === '';
      return [caller.owner, isPlain ? ttl : [ttl, tokens, floor, yields, queue ? placeOf(caller) : ''].join('\n')];
    });
    return [
      requests.flatMap(({ key }) => [key, `{${key}}:fence`, `{${key}}:queue`]),
      args,
      (reply) => {
        const replies = repliesOf(reply, requests);
        for (const [index, request] of requests.entries()) {
          const { key, caller, tokens, yields, floor } = request;
          const before = this.model.valueOf(key);
          const given = replies[index];
          const [wasHeld, reply] = (yields === '' ? [0, given] : given) as [0 | 1, number | [number, string, number]];
          expect(wasHeld).toBe(Number(yields !== '' && before === yields));
          expect(typeof reply === 'number' ? 'granted' : shown(reply)).toEqual(this.model.acquire(request));
          const holders = this.believing.get(key)!;
          if (before === yields) holders.delete(yields);
          if (typeof reply !== 'number') continue;
          holders.add(caller.owner);
          this.granted(key, reply, tokens, floor);
        }
      },
    ];
  }

  private release({ batch }: StepOf<'release'>): Parts {
    const requests = batch.map(({ by, ...request }) => {
      const caller = this.callerOf(request.key, by);
      return { ...request, caller, keepFor: request.leaves ? 0 : request.keepFor };
    });
    return [
      requests.flatMap(({ key }) => [key, `{${key}}:queue`]),
      requests.map(({ caller, keepFor, leaves }) =>
        keepFor === 0 && !leaves ? caller.owner : [caller.owner, keepFor, leaves ? placeOf(caller) : ''].join('\n'),
      ),
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

  private extend({ key, by, ttl, tokens }: StepOf<'extend'>): Parts {
    const caller = this.callerOf(key, by);
    return [
      [key, `{${key}}:fence`, `{${key}}:queue`],
      [caller.owner, ttl, tokens],
      (reply) => {
        const token = Number(reply ?? '');
        expect(reply === null ? 'lost' : token === 0 ? 'wanted' : 'extended').toBe(this.model.extend(key, caller, ttl));
        if (token === 0) return;
        this.granted(key, token, tokens, 0);
      },
    ];
  }

  private granted(key: string, token: number, tokens: number, floor: number): void {
    expect(Number.isSafeInteger(token)).toBe(true);
    this.blocks.push({ key, first: token, last: token + tokens - 1, floor });
  }

  /** G2: tokens only grow, and no two grants have one in common. */
  private async compareTokens(): Promise<void> {
    for (const { key, first, last, floor } of this.blocks.sort((a, b) => a.first - b.first)) {
      expect(first).toBeGreaterThan(this.lastTokens.get(key) ?? 0);
      expect(first).toBeGreaterThanOrEqual(floor);
      this.lastTokens.set(key, last);
    }
    this.blocks = [];
  }

  private check({ key, caller: given }: StepOf<'check'>): Parts {
    const caller = this.present(given);
    return [
      [key, `{${key}}:fence`, `{${key}}:queue`],
      [caller.owner, placeOf(caller)],
      (reply) => {
        const [state, , ...holding] = reply as [string, number, string?, string?];
        expect(state).toBe(this.model.check(key, caller));
        const holder = this.model.valueOf(key);
        expect(holding).toEqual(holder === null ? [] : [holder, String(this.lastTokens.get(key) ?? '')]);
      },
    ];
  }

  private callerOf(key: string, by: Caller | 'holder'): Caller {
    if (by !== 'holder') return this.present(by);
    const value = this.model.valueOf(key)?.replace('kept:', '');
    return this.present(CALLERS.find(({ owner }) => owner === value) ?? CALLERS[0]!);
  }

  protected async compare(): Promise<void> {
    await this.compareTokens();
    for (const [key, { holding, queue }] of this.model.locks) {
      const [value, left, places, names] = await Promise.all([
        this.redis.get(key),
        this.redis.pttl(key),
        this.redis.zrange(`{${key}}:queue`, '0', '-1'),
        this.redis.keys(`*${key}*`),
      ]);
      expect(value).toBe(this.model.valueOf(key));
      if (holding) expect(rounded(left)).toBe(holding.ttl);
      // Nobody waits twice, nor for what it has (G7).
      expect(places).toEqual(queue.map(placeOf));
      expect(places).not.toContain(placeOf({ owner: value ?? '', inbox: '' }));
      // G2, by what they were told; nobody is believed to hold what another has at the server.
      const holders = [...this.believing.get(key)!];
      expect(holders.length).toBeLessThanOrEqual(1);
      if (holders.length > 0) expect(value).toBe(holders[0]);
      expect([key, `{${key}}:fence`, `{${key}}:queue`]).toEqual(expect.arrayContaining(names));
      for (const name of names) expect(await this.redis.pttl(name)).toBeGreaterThan(0);
    }
  }
}

type StepOf<T extends OwnStep['type']> = Extract<OwnStep, { type: T }>;

const placeOf = ({ owner, inbox }: Caller): string => `${owner}\n${inbox}\n${OFFER}`;
/** A run takes far less than the 20 s between two lengths of a lease. */
const rounded = (left: number): number => Math.ceil(left / 20_000) * 20_000;
const shown = ([left, holder, ahead]: [number, string, number]): ExpectedReply => ({ holder, ahead, ttl: rounded(left) });

describe('the scripts of the mutex, whatever comes after whatever', () => {
  playsLikeItsModel(steps, (redis, ear) => new MutexPlay(redis, ear));
});
