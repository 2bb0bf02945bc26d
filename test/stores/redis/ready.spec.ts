import { setTimeout as pause } from 'node:timers/promises';
import type { AcquireOptions, Lease, Locks } from 'nestjs-distributed-lock/core';
import { lua } from '../../../lib/stores/redis/lua.generated.js';
import { eventually } from '../../support/eventually.js';
import { endOf, SLACK, useRedis } from './setting.js';
import { AT_ONCE, queued, scriptCalls, turnOf, woken, type Turn } from './waiting.js';

const KEY = 'order:42';
/** Milliseconds for which a process that yields may be granted the key by a message. */
const READY = 500;

describe('a process that yields its turn', () => {
  const setting = useRedis();

  /** Every turn of a process is its last one, if others wait. */
  const process = (client = setting.client()): Locks => setting.locks({ client }, { localQueue: { handOvers: 1, time: 60_000 } });

  interface Ready {
    readonly ours: Locks;
    /** Of the other process, which waits for another turn. */
    readonly holder: Lease;
    /** Ours, behind the holder. */
    readonly next: Promise<Turn>;
    /** The other process, behind ours. */
    readonly last: Promise<Lease>;
    /** Between these two the request was sent by which we yielded. */
    readonly sent: readonly [from: number, to: number];
    /** How many requests each of our leases took. */
    readonly attempts: readonly number[];
  }

  async function ready(options: AcquireOptions = {}): Promise<Ready> {
    const [ours, theirs] = [process(), process()];
    const attempts: number[] = [];
    ours.on('acquired', (event) => attempts.push(event.attempts));
    // Whose inbox is open queues with its first request.
    for (const locks of [ours, theirs]) {
      const stranger = await setting.own().acquire('other', woken);
      const waiting = locks.acquire('other', woken);
      await queued(setting, 'other', 1);
      await stranger.release();
      await (await waiting).release();
    }
    attempts.length = 0;
    const first = await ours.acquire(KEY, woken);
    const [holding, last] = [theirs.acquire(KEY, woken), theirs.acquire(KEY, woken)];
    await queued(setting, KEY, 1);
    const next = turnOf(ours.acquire(KEY, { ...woken, ...options }));
    const from = performance.now();
    void first.release();
    const to = performance.now();
    const holder = await holding;
    await queued(setting, KEY, 1);
    // Some tests end before these do.
    for (const waiting of [next, last]) waiting.catch(() => undefined);
    return { ours, holder, next, last, sent: [from, to], attempts };
  }

  /** What the server knows of the one that waits. */
  async function place(): Promise<{ owner: string; inbox: string; whole: string }> {
    const [whole = ''] = await setting.redis.zrange(`{${KEY}}:queue`, '0', '0');
    const [owner = '', inbox = ''] = whole.split('\n');
    return { owner, inbox, whole };
  }

  /** Tells the waiter something, and waits until it has asked because of that. */
  async function tell(inbox: string, message: string): Promise<void> {
    const before = await scriptCalls(setting);
    await setting.redis.publish(inbox, message);
    await eventually(async () => (await scriptCalls(setting)) > before);
  }

  const outcomeSoFar = <T>(promise: Promise<T>): Promise<T | 'pending'> =>
    Promise.race([promise, pause(50).then(() => 'pending' as const)]);

  it('says so at once, before its callers do anything else', async () => {
    const client = setting.client();
    const ours = process(client);
    const first = await ours.acquire(KEY, woken);
    const next = ours.acquire(KEY, woken);
    const sending = jest.spyOn(client, 'evalsha');
    const released = first.release();
    expect(sending).toHaveBeenCalledTimes(1);
    expect(await released).toBe(true);
    await (await next).release();
  });

  /** The next turn comes soon enough for a grant: on a busy machine not each time. */
  async function grantedNext(wait = 0): Promise<Ready & { readonly turn: Turn; readonly releasedAt: number }> {
    for (let round = 0; round < 20; round++) {
      const setup = await ready();
      await pause(wait);
      const releasedAt = performance.now();
      void setup.holder.release();
      const turn = await setup.next;
      if (turn.at - setup.sent[0] < READY) return { ...setup, turn, releasedAt };
      await turn.lease.release();
      await (await setup.last).release();
    }
    throw new Error('This machine is too busy for turns of less than half a second.');
  }

  it('gets the next one by the message, and asks nothing more', async () => {
    const { turn, releasedAt, holder, last, attempts } = await grantedNext();
    const { lease } = turn;
    expect(turn.at - releasedAt).toBeLessThan(AT_ONCE);
    expect(attempts).toEqual([1, 1]);
    expect(await setting.redis.get(KEY)).toBe(lease.owner);
    expect(lease.fencingToken).toBeGreaterThan(holder.fencingToken!);
    expect(await lease.release()).toBe(true);
    const { fencingToken } = await last;
    expect(fencingToken).toBeGreaterThan(lease.fencingToken!);
    await (await last).release();
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`, '{other}:fence']);
  });

  it('counts its validity from when it yielded, and the server from later on (G3)', async () => {
    const { turn, sent } = await grantedNext(READY / 5);
    expect(endOf(turn.lease)).toBeLessThanOrEqual(sent[1] + woken.keyTimeout * 0.99);
    const before = performance.now();
    expect(before + (await setting.redis.pttl(KEY))).toBeGreaterThan(endOf(turn.lease));
  });

  it('says so in the queue, and one that comes anew does not: a dead one would have the key for its keyTimeout (G8)', async () => {
    const readiness = async () => (await place()).whole.split('\n')[2];
    const { holder, next, last } = await ready();
    expect(await readiness()).toBe(`1000 ${woken.keyTimeout} 1 ${READY}`);
    await holder.release();
    await (await next).lease.release();
    await last;
    setting
      .own()
      .acquire(KEY, woken)
      .catch(() => undefined);
    await queued(setting, KEY, 1);
    expect(await readiness()).toBe('1000');
  });

  it('is offered it, and asks, when it has waited for so long that it may be gone (G8)', async () => {
    const { holder, next, attempts } = await ready();
    await pause(READY);
    await holder.release();
    await next;
    expect(attempts).toEqual([1, 2]);
  });

  it.each([
    ['no server can tell whether anybody hears it', '0', undefined],
    ['the one who releases may tell nobody', '1', '-publish'],
  ])('is offered it for a second where %s (G8)', async (_where, countsReceivers, right = '+publish') => {
    await setting.redis.acl('SETUSER', 'releaser', 'on', '>secret', '~*', '+@all', right);
    const releaser = setting.client({ username: 'releaser', password: 'secret' });
    await setting.redis.set(KEY, 'holder', 'PX', 60_000);
    await setting.redis.zadd(`{${KEY}}:queue`, Date.now() * 1000, 'waiter\nno inbox\n1000 60000 1 60000');
    const keys = [KEY, `{${KEY}}:fence`, `{${KEY}}:queue`];
    await releaser.eval(lua['mutex/acquire'], 3, ...keys, countsReceivers, 60_000, 'yielder', 60_000, 1, '', 'holder');
    expect(await setting.redis.get(KEY)).toBe('waiter');
    expect(await setting.redis.pttl(KEY)).toBeLessThanOrEqual(1_000);
  });

  it('holds the key for its keyTimeout when it hangs by then, and not for longer (G2, G8)', async () => {
    const ours = process();
    const first = await ours.acquire(KEY, woken);
    const next = turnOf(ours.acquire(KEY, woken));
    // It is listened for, and nobody does anything.
    await setting.client().subscribe('its inbox');
    const [seconds, micros] = await setting.redis.time();
    await setting.redis.zadd(`{${KEY}}:queue`, Number(seconds) * 1e6 + Number(micros), `hanging\nits inbox\n1000 2000 1 ${READY}`);
    const start = performance.now();
    await first.release();
    await eventually(async () => (await setting.redis.get(KEY)) === 'hanging');
    const { lease, at } = await next;
    expect(at - start).toBeGreaterThan(1_900);
    expect(at - start).toBeLessThan(2_000 + SLACK);
    lease.assertHeld();
  });

  it('asks where its lease would have less than half of its length left (G3)', async () => {
    const keyTimeout = 1_000;
    const { next, sent, attempts } = await ready({ keyTimeout });
    const { owner, inbox, whole } = await place();
    await pause(sent[1] + keyTimeout / 2 - performance.now());
    await setting.redis.multi().set(KEY, owner, 'PX', keyTimeout).zrem(`{${KEY}}:queue`, whole).exec();
    await setting.redis.publish(inbox, `${owner}\n1`);
    const { lease } = await next;
    expect(attempts).toEqual([1, 2]);
    expect(lease.fencingToken).toBeGreaterThan(1);
  });

  it('asks where the key must be kept for a minHold, which counts from its start', async () => {
    const { holder, next, attempts } = await ready({ minHold: 100 });
    await holder.release();
    await next;
    expect(attempts).toEqual([1, 2]);
  });

  it('asks, and waits on, when it is told so after it has asked again: that may be old (G2)', async () => {
    const { holder, next, last } = await ready();
    const { owner, inbox } = await place();
    await tell(inbox, owner);
    await tell(inbox, `${owner}\n1`);
    expect(await outcomeSoFar(next)).toBe('pending');
    holder.assertHeld();
    expect(await holder.release()).toBe(true);
    await (await next).lease.release();
    await (await last).release();
  });

  it('passes it on when it gives up meanwhile (G6, G7)', async () => {
    for (let round = 0; round < 20; round++) {
      const controller = new AbortController();
      const { holder, next, last } = await ready({ signal: controller.signal });
      const start = performance.now();
      const released = holder.release();
      if (round % 2) await pause(round / 4);
      controller.abort();
      await next.then(
        ({ lease }) => lease.release(),
        () => undefined,
      );
      expect(await released).toBe(true);
      await (await last).release();
      expect(performance.now() - start).toBeLessThan(AT_ONCE);
      await eventually(async () => expect(await setting.keys()).toEqual([`{${KEY}}:fence`, '{other}:fence']));
    }
  });
});
