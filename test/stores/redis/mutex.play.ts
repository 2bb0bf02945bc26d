import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { lua } from '../../../lib/stores/redis/scripts/redis.script.js';
import { type EntryOf, keysOf, LeasePlay, OFFER, repliesOf, rounded, type StepOf } from './lease.play.js';
import { MutexLock, MutexModel, type ExpectedReply } from './mutex.model.js';
import { leaseSteps, series, type AcquireStep, type Disturbance, type LeaseStep } from './model.steps.js';
import { type Caller } from './queue.model.js';
import { playsLikeItsModel, type Ear, type Parts } from './script.play.js';

const KEYS = ['one', 'other'] as const;
type Key = (typeof KEYS)[number];

type OwnStep =
  | LeaseStep<Key>
  | AcquireStep<Key, { yields: 'nobody' | 'holder' | 'stranger' }>
  | { type: 'extend'; key: Key; by: Caller | 'holder'; ttl: number; tokens: number }
  | { type: 'expire' | 'classic set' | 'classic delete'; key: Key };

const { key, by, ttl, tokens, request, common, batchOf, of } = leaseSteps(KEYS);

const steps = series<OwnStep | Disturbance>(
  {
    weight: 10,
    arbitrary: fc.record({
      type: of('acquire'),
      batch: batchOf(fc.record({ ...request, yields: fc.constantFrom('nobody', 'nobody', 'holder', 'stranger') })),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: of('extend'), key, by, ttl, tokens }) },
  { weight: 2, arbitrary: fc.record({ type: of('expire'), key }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constantFrom('classic set', 'classic delete'), key }) },
  ...common,
);

const STRANGER = 'a stranger';

class MutexPlay extends LeasePlay<Key, MutexModel, OwnStep> {
  /** First and last ones that were given in this step. */
  private blocks: { key: string; first: number; last: number; floor: number }[] = [];
  protected readonly believing = new Map<string, Set<string>>(KEYS.map((key) => [key, new Set()]));

  constructor(redis: Redis, ear: Ear) {
    super(redis, ear, new MutexModel(KEYS, MutexLock, OFFER));
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
    } else await this.send(lua(`mutex/${step.type}`, 3_600_000), this[step.type](step as never));
  }

  private acquire({ batch }: StepOf<OwnStep, 'acquire'>): Parts {
    const requests = batch.map(({ yields, ahead, ...given }) => {
      const request = { ...given, caller: this.present(given.caller), floor: this.floorOf(given.key, ahead) };
      // Of one that has given it up too, and stays until its minHold is over: that must not end by a late request.
      const holder = yields === 'holder' ? (this.model.locks.get(request.key)!.holding?.owner ?? '') : '';
      return { ...request, yields: yields === 'stranger' ? 'nobody:knows' : holder === request.caller.owner ? '' : holder };
    });
    const args = requests.flatMap(({ key, caller, ttl, tokens, floor, queue, yields }) => {
      const isPlain = tokens === 1 && floor === 0 && !queue && yields === '';
      return [caller.owner, isPlain ? ttl : [ttl, tokens, floor, yields, queue ? this.entryOf(key, caller) : ''].join('\n')];
    });
    return [
      requests.flatMap(({ key }) => keysOf(key)),
      args,
      (reply) => {
        const replies = repliesOf(reply, requests);
        for (const [index, request] of requests.entries()) {
          const { key, caller, tokens, yields, floor } = request;
          const before = this.model.valueAt(key);
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

  private extend({ key, by, ttl, tokens }: StepOf<OwnStep, 'extend'>): Parts {
    const caller = this.callerOf(key, by);
    return [
      keysOf(key),
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

  private check({ key, caller: given }: StepOf<OwnStep, 'check'>): Parts {
    const caller = this.present(given);
    return [
      keysOf(key),
      [caller.owner, this.entryOf(key, caller)],
      (reply) => {
        const [state, , ...holding] = reply as [string, number, string?, string?];
        expect(state).toBe(this.model.check(key, caller));
        const holder = this.model.valueAt(key);
        expect(holding).toEqual(holder === null ? [] : [holder, String(this.lastTokens.get(key) ?? '')]);
      },
    ];
  }

  protected entryOf(_key: string, { owner, inbox }: Caller): string {
    return `${owner}\n${inbox}\n${OFFER}`;
  }

  protected async compare(): Promise<void> {
    // G2: tokens only grow, and no two grants have one in common.
    for (const { key, first, last, floor } of this.blocks.sort((a, b) => a.first - b.first)) {
      expect(first).toBeGreaterThan(this.lastTokens.get(key) ?? 0);
      expect(first).toBeGreaterThanOrEqual(floor);
      this.lastTokens.set(key, last);
    }
    this.blocks = [];
    const compareKey = async ([key, { holding, queue }]: EntryOf<MutexModel>) => {
      const [value, left, entries] = await Promise.all([
        this.redis.get(key),
        this.redis.pttl(key),
        this.redis.zrange(`{${key}}:queue`, '0', '-1'),
      ]);
      expect(value).toBe(this.model.valueAt(key));
      if (holding) expect(rounded(left)).toBe(holding.ttl);
      // Nobody waits twice, nor for what it has (G7).
      expect(entries).toEqual(queue.map((caller) => this.entryOf(key, caller)));
      expect(entries).not.toContain(this.entryOf(key, { owner: value ?? '', inbox: '' }));
      // G2, by what they were told; nobody is believed to hold what another has at the server.
      const holders = [...this.believing.get(key)!];
      expect(holders.length).toBeLessThanOrEqual(1);
      if (holders.length > 0) expect(value).toBe(holders[0]);
      await this.compareNames(key);
    };
    await Promise.all([...this.model.locks].map(compareKey));
  }
}

const shown = ([left, holder, ahead]: [number, string, number]): ExpectedReply => ({ holder, ahead, ttl: rounded(left) });

export const mutexPlay = playsLikeItsModel('the scripts of the mutex', steps, (redis, ear) => new MutexPlay(redis, ear));
