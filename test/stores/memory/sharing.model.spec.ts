import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import type { LeaseDriver } from 'nestjs-distributed-lock/core';
import { CALLERS, PROCESSES, type Disturbance } from '../redis/model.steps.js';
import type { Caller } from '../redis/mutex.model.js';
import { SharingModel, WHOLE } from '../redis/sharing.model.js';
import { KEYS, steps, WISHES, type Key, type OwnStep } from '../redis/sharing.steps.js';
import { memoryAndRemains, recordsOf } from './setting.js';

const OFFER = 1_000;
/** That steps ask with. */
const MOST_PERMITS = 5;

const rounded = (left: number) => (Math.round(left) <= OFFER ? OFFER : Math.round(left / 20_000 + 0.4) * 20_000);
/** As the engine asks for it. */
const infinite = (count: number) => (count === WHOLE ? Infinity : count);

/** Plays the steps, but those of connections, in the memory store and in the model of what Redis does, and compares after each. */
class Play {
  readonly model = new SharingModel(KEYS, OFFER, false);
  private readonly setting = memoryAndRemains();
  private readonly records = recordsOf(this.setting.store);
  private readonly woken: string[] = [];
  private readonly again: (() => Promise<void>)[] = [];
  private readonly lastTokens = new Map<string, number>();

  constructor() {
    for (const inbox of PROCESSES) this.model.listening.add(inbox);
    for (const { owner, inbox } of CALLERS) {
      if (inbox !== '') this.setting.store.semaphore!.wakeUps!.listen(owner, (askIn) => askIn === undefined && this.woken.push(owner));
    }
  }

  async step(step: OwnStep | Disturbance): Promise<void> {
    if (step.type === 'repeat') await this.again.at(-1 - step.ago)?.();
    else if (step.type === 'expire') this.expire(step);
    else if (step.type === 'check') await this.check(step.key, step.caller);
    else if (step.type === 'acquire') for (const one of step.batch) await this.send(this.acquire(one));
    else if (step.type === 'release') for (const one of step.batch) await this.send(this.release(one));
    else if (step.type === 'renew') for (const one of step.batch) await this.send(this.renew(one, step.ttl));
    await turn();
    this.compare();
  }

  /** Everybody gives up, and whatever is kept runs out. */
  async end(): Promise<void> {
    for (const key of KEYS) {
      for (const by of CALLERS) await this.step({ type: 'release', batch: [{ key, by, keepFor: 0, leaves: true }] });
      await this.step({ type: 'expire', key, all: true, which: 0 });
      await this.check(key, CALLERS[0]!);
    }
    expect(this.setting.remains()).toEqual([]);
  }

  private async send(request: () => Promise<void>): Promise<void> {
    this.again.push(request);
    await request();
  }

  private acquire({ key, caller, ttl, tokens, queue, permits: offered, beside }: BatchOf<'acquire'>): () => Promise<void> {
    const { writes, rank, permits: wanted } = WISHES.get(caller)!;
    const holder = [...this.model.at(key).holders.keys()].find((name) => name !== caller.owner) ?? '';
    const own = beside === 'nobody' || key === 'pool' || writes ? '' : beside === 'holder' ? holder : 'nobody:knows';
    const [count, permits] = key === 'doc' ? [writes ? WHOLE : 1, WHOLE] : [wanted, offered];
    const share = { count: infinite(count), permits: infinite(permits), rank: rank[key], beside: own === '' ? undefined : own };
    return async () => {
      const reply = await this.driverOf(key, writes).acquire({
        key,
        owner: caller.owner,
        ttl,
        tokens,
        queue,
        share,
      });
      const expected = this.model.acquire({ key, caller, ttl, queue, count, permits, rank: rank[key], beside: own });
      if (!reply.granted) {
        const { remaining, holder: named, ahead } = reply;
        const { holders, ...others } = expected as Exclude<typeof expected, 'granted'>;
        expect(others).toEqual({ ttl: remaining === -1 ? -1 : rounded(remaining), ahead });
        expect(holders.map((holder) => holder.replace('kept:', ''))).toContain(named ?? '');
        return;
      }
      expect(expected).toBe('granted');
      const last = this.lastTokens.get(key) ?? 0;
      const isRead = key === 'doc' && !writes;
      if (isRead && last > 0) expect(reply.token).toBe(last);
      else expect(reply.token).toBeGreaterThan(last);
      this.lastTokens.set(key, isRead ? reply.token! : reply.token! + tokens - 1);
    };
  }

  private release({ key, by, keepFor, leaves }: BatchOf<'release'>): () => Promise<void> {
    const caller = this.callerOf(key, by);
    return async () => {
      const { owner } = caller;
      if (leaves) {
        this.model.leave(key, caller);
        return this.driverOf(key).leave({ key, owner });
      }
      // A release leaves the queue too.
      const lock = this.model.at(key);
      lock.queue = lock.queue.filter((place) => place.caller !== caller);
      const expected = this.model.release(key, caller, keepFor);
      expect(await this.driverOf(key).release({ key, owner, keepFor })).toBe(expected ? 'released' : 'lost');
    };
  }

  private renew({ key, by }: BatchOf<'renew'>, ttl: number): () => Promise<void> {
    const caller = this.callerOf(key, by);
    return async () => {
      const expected = this.model.renew(key, caller, ttl) ? 'renewed' : 'lost';
      expect(await Promise.all(this.driverOf(key).renew([{ key, owner: caller.owner, ttl }]))).toEqual([expected]);
    };
  }

  private async check(key: Key, caller: Caller): Promise<void> {
    const { state } = await this.driverOf(key).check({ key, owner: caller.owner });
    expect(state).toBe(this.model.check(key, caller));
  }

  /** As if its end had come. */
  private expire({ key, all, which }: Extract<OwnStep, { type: 'expire' }>): void {
    const holders = [...this.model.at(key).holders.keys()];
    for (const holder of all ? holders : holders.slice(which, which + 1)) {
      this.model.expire(key, holder);
      const record = this.records.get(key)!;
      record.holds.find(({ owner }) => owner === holder)!.endsAt = 0;
      record.soonest = 0;
    }
  }

  private driverOf(key: Key, writes = false): LeaseDriver {
    const { readWriteLock, semaphore } = this.setting.store;
    return key === 'pool' ? semaphore! : readWriteLock![writes ? 'write' : 'read'];
  }

  private callerOf(key: Key, by: Caller | 'holder'): Caller {
    if (by !== 'holder') return by;
    const holders = [...this.model.at(key).holders.keys()].map((name) => name.replace('kept:', ''));
    return CALLERS.find(({ owner }) => holders.includes(owner)) ?? CALLERS[0]!;
  }

  private compare(): void {
    // Who is told when an offer ends is told so for processes that hang, of which there is one here.
    const offers = this.model.said.splice(0).flatMap(([, text]) => / is offered to (.*)/.exec(text)?.[1] ?? []);
    expect(this.woken.splice(0)).toEqual(offers);
    for (const [key, { holders, queue }] of this.model.locks) {
      const record = this.records.get(key);
      const holds = (record?.holds ?? []).filter(({ endsAt }) => endsAt > 0);
      const seen = holds.map(({ owner, count, endsAt }) => [owner, { count, ttl: rounded(endsAt - performance.now()) }] as const);
      expect(new Map<string, object>(seen)).toEqual(new Map([...holders].map(([owner, { count, ttl }]) => [owner, { count, ttl }])));
      expect((record?.queue?.line ?? []).map(({ owner }) => owner)).toEqual(queue.map(({ caller }) => caller.owner));
      // G2: one has the whole key at most, and nobody more permits than the most that there were. Which readers are with a writer says the model.
      const counts = [...holders.values()].map(({ count }) => count);
      expect(counts.filter((count) => count === WHOLE).length).toBeLessThanOrEqual(1);
      if (key === 'pool') expect(counts.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(MOST_PERMITS);
    }
  }
}

type BatchOf<T extends 'acquire' | 'release' | 'renew'> = Extract<OwnStep, { type: T }>['batch'][number];

it('the memory store does as the model of the scripts on Redis does, whatever comes after whatever (G2, G5, G6, G7, G8)', async () => {
  const property = fc.asyncProperty(steps, async (all) => {
    const play = new Play();
    for (const step of all) await play.step(step);
    await play.end();
  });
  await fc.assert(property, { numRuns: 250 });
});
