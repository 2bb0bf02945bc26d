import { inspect } from 'node:util';
import type { Holding, LockProbe } from './lock-probe.js';

/** A method that code under test must call while it holds a key. */
export type Part = readonly [target: object, method: string];

/** A call of a {@link Part}. */
interface PartCall {
  readonly name: string;
  /** The holdings under which it began. */
  readonly under: readonly Holding[];
  state: 'running' | 'ended in time' | 'ended late';
}

/** Runs the work. Resolves to what is wrong with it; `undefined`: it and its parts ran while the key was held. */
export async function runsUnder(
  work: () => unknown,
  locks: LockProbe,
  isMeant: (key: string) => boolean,
  parts: readonly Part[],
): Promise<string | undefined> {
  const before = new Set(locks.holdings);
  const calls: PartCall[] = [];
  const held = (): Holding[] => locks.held.filter(({ key }) => isMeant(key));
  const restore = parts.map((part) => follow(part, held, calls));
  try {
    await ended(work());
  } catch (error) {
    return `it failed: ${inspect(error)}`;
  } finally {
    for (const each of restore) each();
  }
  const taken = locks.holdings.filter((each) => !before.has(each) && isMeant(each.key));
  if (taken.length === 0) return 'it did not take it';
  const unreleased = taken.find(({ state }) => state !== 'released');
  if (unreleased) return unreleased.state === 'lost' ? 'the lease was lost meanwhile' : 'it still holds it at its end';
  const missing = parts.find((part) => !calls.some(({ name }) => name === nameOf(part)));
  if (missing) return `${nameOf(missing)} was not called`;
  const wrong = calls.find(({ under, state }) => under.length === 0 || state !== 'ended in time');
  if (!wrong) return undefined;
  return `${wrong.name} ${wrong.under.length === 0 ? 'was called without it' : 'ended only after its release'}`;
}

function follow(part: Part, held: () => Holding[], calls: PartCall[]): () => void {
  const [object, method] = part;
  const target = object as Record<string, unknown>;
  const original = target[method];
  if (typeof original !== 'function') throw new TypeError(`toRunUnder: ${nameOf(part)} is no method.`);
  const own = Object.getOwnPropertyDescriptor(target, method);
  target[method] = function (this: unknown, ...args: unknown[]): unknown {
    const call: PartCall = { name: nameOf(part), under: held(), state: 'running' };
    calls.push(call);
    const isInTime = (): boolean => call.under.some(({ state }) => state === 'held');
    const end = (): void => void (call.state = isInTime() ? 'ended in time' : 'ended late');
    let result: unknown;
    try {
      result = (original as (...args: unknown[]) => unknown).apply(this, args);
    } catch (error) {
      end();
      throw error;
    }
    if (result instanceof Promise) result.then(end, end);
    else end();
    return result;
  };
  return () => {
    if (own) Object.defineProperty(target, method, own);
    else delete target[method];
  };
}

function nameOf([target, method]: Part): string {
  return `${target.constructor.name}.${method}`;
}

type Subscribable = { subscribe(observer: { complete(): void; error(error: unknown): void }): unknown };

/** Until what the work returned is over: a promise, an Observable or an async iterable. */
async function ended(result: unknown): Promise<void> {
  const it = Object(result) as AsyncIterable<unknown> | Subscribable | { readonly subscribe?: undefined };
  if (Symbol.asyncIterator in it) for await (const _value of it);
  else if (typeof it.subscribe === 'function') await new Promise<void>((complete, error) => void it.subscribe({ complete, error }));
  else await result;
}
