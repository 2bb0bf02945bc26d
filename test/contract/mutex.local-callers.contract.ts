import { passTime } from '../support/virtual-time.js';
import { type AcquireRequest, type Lease, LockAbortedError, type Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from '../support/gate.js';
import { changing, deaf, held, oneByOne, outage, queued, refusal } from './misbehaviour.js';
import { rejection, timed } from '../support/rejection.js';
import { patient, type Setting } from './setting.js';

/** Callers of one process that want one key, each with options of its own; one at a time asks the store, on behalf of all. */
export function localCallersContract({ open, newKey, isFree }: Setting): void {
  let key: string;
  let locks: Locks;
  beforeEach(() => {
    key = newKey();
    locks = open();
  });

  it('G7 nothing stays at the store of a lease that a request was to hand over, when all waiters give up', async () => {
    const away = open({
      misbehaving: (real) => ({ acquire: (request) => (request.yields ? Promise.reject(outage()) : real.acquire(request)) }),
    });
    const caller = new AbortController();
    const holder = await away.acquire(key, patient);
    const next = rejection(away.acquire(key, { ...patient, keyTimeout: 30_000, signal: caller.signal }));
    await holder.release();
    caller.abort();
    expect(await next).toBeInstanceOf(LockAbortedError);
    await eventually(() => isFree(key));
  });

  describe('callers of one process that wait for one key', () => {
    it('each get a lease of their own keyTimeout', async () => {
      const holder = await locks.acquire(key, patient);
      const lengths = [60_000, 5_000, 5_000, 60_000, 20_000];
      const leases = lengths.map((keyTimeout) => locks.acquire(key, { ...patient, keyTimeout }));
      await holder.release();
      for (const [index, waiting] of leases.entries()) {
        const lease = await waiting;
        expect(lease.remaining()).toBeLessThanOrEqual(lengths[index]!);
        expect(lease.remaining()).toBeGreaterThan(lengths[index]! / 2);
        await lease.release();
      }
    });

    it('each give up by their own wait timeout and by their own signal, and the others go on', async () => {
      const holder = await locks.acquire(key, patient);
      const order: string[] = [];
      const caller = new AbortController();
      const call = (name: string, options: object) =>
        locks
          .using(key, () => void order.push(name), { ...patient, ...options })
          .catch((error: Error) => order.push(`${name} ${error.name}`));
      const calls = [
        call('first', {}),
        call('late', { waitTimeout: 200 }),
        call('second', {}),
        call('aborted', { signal: caller.signal }),
        call('later', { waitTimeout: 400 }),
        call('third', { waitTimeout: 30_000 }),
      ];
      caller.abort();
      await eventually(() => order.length === 3);
      await holder.release();
      await Promise.all(calls);
      const gaveUp = ['aborted LockAbortedError', 'late LockTimeoutError', 'later LockTimeoutError'];
      expect(order).toEqual([...gaveUp, 'first', 'second', 'third']);
    });

    it('keep the key for their own minHold, and for no other’s', async () => {
      const minHolds = [300, 0, 300];
      const holder = await locks.acquire(key, patient);
      const times: number[] = [];
      const hold = async (waiting: Promise<Lease>) => {
        const lease = await waiting;
        times.push(performance.now());
        await lease.release();
      };
      const calls = minHolds.map((minHold) => hold(locks.acquire(key, { ...patient, minHold })));
      await holder.release();
      await Promise.all(calls);
      await hold(locks.acquire(key, patient));
      const isKept = minHolds.map((_, index) => times[index + 1]! - times[index]! >= 290);
      expect(isKept).toEqual([true, false, true]);
    });

    it('are held to their own maxHold, and to no other’s', async () => {
      const holder = await locks.acquire(key, patient);
      const work = ({ signal }: Lease) => passTime(200).then(() => signal.aborted);
      const bounded = locks.using(key, work, { ...patient, maxHold: 50, onLost: 'ignore' });
      const free = locks.using(key, work, patient);
      await holder.release();
      expect([await bounded, await free]).toEqual([true, false]);
    });

    it('go on when the body of the one before never ends, once its maxHold and its keyTimeout are over', async () => {
      const never = new Promise<void>(() => undefined);
      void locks.using(key, () => never, { ...patient, keyTimeout: 500, maxHold: 100 }).catch(() => undefined);
      const { result: next, elapsed } = await timed(() => locks.acquire(key, { ...patient, keyTimeout: 500 }));
      expect(elapsed).toBeLessThan(100 + 500 + 2_000);
      next.assertHeld();
    });

    it('are called off by stopWaiting behind one whose request is under way, which is granted', async () => {
      const [sent, answer] = [gate(), gate()];
      const slow = open({ misbehaving: oneByOne(answer.passed, sent.open) });
      const first = slow.acquire(key, patient);
      const second = rejection(slow.acquire(key, patient));
      await sent.passed;
      slow.stopWaiting();
      answer.open();
      (await first).assertHeld();
      expect(await second).toMatchObject({ name: 'LockAbortedError', reason: 'shutdown' });
    });

    it('hand over the queue entry when the first of them gives up', async () => {
      const holder = await open().acquire(key, patient);
      const caller = new AbortController();
      const order: string[] = [];
      const entries = new Set<string>();
      const recorded = () => open({ misbehaving: queued(({ owner }) => entries.add(owner)) });
      const process = recorded();
      const first = rejection(process.acquire(key, { ...patient, signal: caller.signal }));
      const second = process.using(key, () => order.push('second'), patient);
      await eventually(() => entries.size === 1);
      const stranger = recorded().using(key, () => order.push('stranger'), patient);
      await eventually(() => entries.size === 2);
      caller.abort();
      expect(await first).toBeInstanceOf(LockAbortedError);
      await holder.release();
      await Promise.all([second, stranger]);
      expect(order).toEqual(['second', 'stranger']);
    });

    it('poll by the retryInterval of the caller that is first now, not of one that gave up', async () => {
      const holder = await open().acquire(key, patient);
      const caller = new AbortController();
      let entries = 0;
      const polls = queued(() => entries++);
      const unwoken = open({ misbehaving: (real) => ({ ...polls(real), ...deaf(real) }) });
      const first = rejection(unwoken.acquire(key, { ...patient, signal: caller.signal }));
      const second = unwoken.acquire(key, { ...patient, retryInterval: 200 });
      await eventually(() => entries > 0);
      caller.abort();
      await first;
      const before = entries;
      await eventually(() => entries > before);
      const { elapsed } = await timed(() => Promise.all([holder.release(), second]));
      expect(elapsed).toBeLessThanOrEqual(2 * 200 + 50);
    });

    it.each([
      ['minHold', { minHold: 400 }],
      ['keyTimeout', { keyTimeout: 20_000 }],
    ])('get their own %s also when the one who asked for them gave up meanwhile', async (_name, own) => {
      const { sent, answer, misbehaving } = held('acquire');
      const requests: AcquireRequest[] = [];
      const noting = changing('acquire', (send, request) => (requests.push(request as AcquireRequest), send()));
      const slow = open({ misbehaving: (real) => noting({ ...real, ...misbehaving(real) }) });
      const caller = new AbortController();
      const first = rejection(slow.acquire(key, { ...patient, keyTimeout: 3_000, signal: caller.signal }));
      const second = slow.acquire(key, { ...patient, keyTimeout: 3_000, ...own });
      await sent;
      caller.abort();
      await first;
      answer();
      const lease = await second;
      if ('keyTimeout' in own) {
        expect(lease.remaining()).toBeGreaterThan(own.keyTimeout / 2);
        expect(requests.at(-1)!.ttl).toBe(own.keyTimeout);
      }
      const { elapsed } = await timed(async () => [await lease.release(), await open().acquire(key, patient)]);
      if ('minHold' in own) expect(elapsed).toBeGreaterThanOrEqual(own.minHold - 100);
    });
  });

  describe('G9 callers of one process that wait for one key', () => {
    it('end by their wait timeout though the request on behalf of the first one is under way', async () => {
      const [sent, answer, body] = [gate(), gate(), gate()];
      const slow = open({ misbehaving: oneByOne(answer.passed, sent.open) });
      const first = slow.using(key, () => body.passed, patient);
      await sent.passed;
      const impatient = timed(() => rejection(slow.acquire(key, { waitTimeout: 50 })));
      await passTime(150);
      answer.open();
      const { result, elapsed } = await Promise.race([impatient, passTime(2_000).then(() => ({ result: 'none', elapsed: Infinity }))]);
      body.open();
      await first;
      expect(result).toMatchObject({ code: 'LOCK_TIMEOUT', key });
      expect(elapsed).toBeLessThan(200);
    });

    it('all get it when the outage ends in time, one after the other', async () => {
      const end = performance.now() + 300;
      const noAnswer = () => passTime(200).then(() => Promise.reject(outage()));
      const misbehaving = changing('acquire', (send) => (performance.now() < end ? noAnswer() : send()));
      const shaky = open({ requestTimeout: 200, misbehaving });
      let inside = 0;
      let most = 0;
      const body = async () => {
        most = Math.max(most, ++inside);
        await passTime(1);
        inside--;
      };
      await Promise.all(Array.from({ length: 50 }, () => shaky.using(key, body, { waitTimeout: 20_000, retryInterval: 20 })));
      expect(most).toBe(1);
    });

    it('are refused together when the store says that no retry helps', async () => {
      let asked = 0;
      const refuse = () => (asked++, passTime(50).then(() => Promise.reject(refusal())));
      const refused = open({ misbehaving: changing('acquire', refuse) });
      const calls = Array.from({ length: 20 }, () => timed(() => rejection(refused.acquire(key, { waitTimeout: Infinity }))));
      for (const { result, elapsed } of await Promise.all(calls)) {
        expect(result).toMatchObject({ code: 'LOCK_STORE' });
        expect(elapsed).toBeLessThan(100);
      }
      expect(asked).toBe(1);
    });
  });
}
