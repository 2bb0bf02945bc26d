import { passTime } from '../support/virtual-time.js';
import { type AcquireRequest, type LatchDriver, type LeaseDriver, StoreError } from 'nestjs-distributed-lock/core';
import { gate } from '../support/gate.js';
import type { Misbehaviour } from './open-locks.js';
import { renewalBy, renewing } from './renewing.js';

type Driver = LeaseDriver | LatchDriver;
type Verb = 'acquire' | 'adopt' | 'renew' | 'release' | 'leave' | 'check' | 'trySetCount' | 'countDown' | 'look';
type Altered<D extends Driver> = (real: D) => Partial<D>;

/** What a driver rejects with when the store does not answer: it may have done what it was asked, and asking again may help. */
export function outage(): StoreError {
  return new StoreError('No answer, on purpose.', { transient: true });
}

/** What a driver rejects with when the store refuses, so that no retry helps. */
export function refusal(): StoreError {
  return new StoreError('NOPERM, on purpose.', { transient: false });
}

export function fault(): TypeError {
  return new TypeError('A fault of the driver.');
}

/** Each request of this verb, as `change` sends it. */
export function changing<D extends Driver = LeaseDriver>(
  verb: Verb,
  change: (send: () => Promise<never>, request: { key: string }) => Promise<unknown>,
): Altered<D> {
  return (real) => {
    if (verb === 'renew') {
      const renew = renewing(
        (request) => change(() => renewalBy(real as LeaseDriver, request) as Promise<never>, request) as Promise<never>,
      );
      return { renew } as unknown as Partial<D>;
    }
    const verbs = real as unknown as Record<Verb, (request: unknown) => Promise<never>>;
    return { [verb]: (request: { key: string }) => change(() => verbs[verb](request), request) } as unknown as Partial<D>;
  };
}

/** The first `times` requests of this verb do not reach the store. */
export function failing<D extends Driver = LeaseDriver>(verb: Verb, times = Infinity, failure: () => Error = outage): Altered<D> {
  return changing(verb, (send) => (times-- > 0 ? Promise.reject(failure()) : send()));
}

/** The first `times` requests of this verb are applied, and their replies are lost. */
export function losing<D extends Driver = LeaseDriver>(verb: Verb, times = 1): Altered<D> {
  return changing(verb, async (send) => {
    const reply = await send();
    if (times-- > 0) throw outage();
    return reply;
  });
}

/** Nothing reaches the store, and it says so only after so many milliseconds: by default never. */
export function silent<D extends Driver = LeaseDriver>(verb: Verb, after = Infinity): Altered<D> {
  const isNever = after === Infinity;
  return changing(verb, () => (isNever ? new Promise(() => undefined) : passTime(after).then(() => Promise.reject(outage()))));
}

/** The first `times` replies come so many milliseconds late. */
export function late<D extends Driver = LeaseDriver>(verb: Verb, milliseconds: number, times = Infinity): Altered<D> {
  return changing(verb, async (send) => {
    const reply = await send();
    if (times-- > 0) await passTime(milliseconds);
    return reply;
  });
}

/** Counts what is asked, and passes it on. */
export function counting<D extends Driver = LeaseDriver>(...verbs: Verb[]): { asked: number; misbehaving: Altered<D> } {
  const counted = {
    asked: 0,
    misbehaving: (real: D) =>
      Object.assign({}, ...verbs.map((verb) => changing<D>(verb, (send) => (counted.asked++, send()))(real))) as Partial<D>,
  };
  return counted;
}

/** Requests of this verb, or their replies, which wait until the test lets them go on. */
export function held<D extends Driver = LeaseDriver>(verb: Verb, what: 'requests' | 'replies' = 'replies') {
  const [sent, answer] = [gate(), gate()];
  const misbehaving = changing<D>(verb, async (send) => {
    const reply = what === 'replies' ? send() : undefined;
    await reply;
    sent.open();
    await answer.passed;
    return reply ? await reply : send();
  });
  return { sent: sent.passed, answer: answer.open, misbehaving };
}

/** Writes down which verbs were sent, in their order. */
export function recording(sent: string[], then: Misbehaviour = () => ({})): Misbehaviour {
  return (real) => {
    const driver: LeaseDriver = { ...real, ...then(real) };
    const verbs = ['acquire', 'renew', 'release', 'leave'] as const;
    return Object.fromEntries(verbs.map((verb) => [verb, (request: never) => (sent.push(verb), driver[verb](request))]));
  };
}

/** Notes each acquire that has put its owner into the queue, or has been granted on the way. */
export function queued(note: (request: AcquireRequest) => unknown): Misbehaviour {
  return (real) => ({ acquire: (request) => real.acquire(request).finally(() => request.queue && note(request)) });
}

/** Wake-ups that are lost. */
export function deaf<D extends Driver>({ wakeUps }: D): Partial<D> {
  if (!wakeUps) return {};
  return { wakeUps: { isOpen: true, open: () => Promise.resolve(), listen: () => () => undefined } } as unknown as Partial<D>;
}

/** Acquires reach the store one after the other, in the order in which they are sent: the first when `start` resolves. */
export function oneByOne(start: Promise<unknown>, onSent: () => void): Misbehaviour {
  let last = start;
  return changing('acquire', (send) => {
    onSent();
    last = last.then(send);
    return last;
  });
}
