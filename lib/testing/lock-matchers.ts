import type { LockKindName } from '../core/model/events.js';
import { isMeant, shownKey, type KeyPattern } from './key-pattern.js';
import { LockProbe, type Holding } from './lock-probe.js';

/** Further conditions of `toHaveLocked`. */
export interface LockedHow {
  /** How often. Default: at least once. */
  times?: number;
  /** The label of the caller: of a decorated method `'StockService.reduce'`. */
  by?: string;
  kind?: LockKindName;
}

/** The matchers of {@link lockMatchers}. Keys are with their namespace, as text or as a pattern. */
export interface LockMatchers<R = unknown> {
  /** A holding of the key has begun. */
  toHaveLocked(key: KeyPattern, how?: LockedHow): R;
  /** These keys, and no other one of them in between, were taken in this order. */
  toHaveLockedInOrder(keys: readonly string[]): R;
  /** Nothing is held now: for an `afterEach`. */
  toHoldNothing(): R;
  /** A caller found the key taken, and waited. `atLeast`: milliseconds. */
  toHaveWaited(key: KeyPattern, how?: { atLeast?: number }): R;
  /** The wait timeout of a caller was over. */
  toHaveTimedOut(key: KeyPattern): R;
  /** A lease of the key was lost while it was held, or found lost by its release. */
  toHaveLost(key: KeyPattern): R;
  /** It was released while a transaction was open that a fence guard had checked: the commit came too late. */
  toHaveReleasedEarly(key: KeyPattern): R;
  /** Two holdings overlapped: of one key, or of two keys that the pattern means. */
  toHaveOverlapped(key: KeyPattern): R;
}

/** The result of a matcher, for its runner. */
export interface Verdict {
  /** Whether it is so; with `.not` the runner turns it around. */
  readonly pass: boolean;
  /** The text that the runner prints if that is wrong. */
  readonly message: () => string;
}

/** The matchers as functions of what is expected of. */
export type LockMatcherFunctions = {
  [Name in keyof LockMatchers]: (received: unknown, ...expected: Parameters<LockMatchers[Name]>) => Verdict;
};

/** For `expect.extend(lockMatchers)`, in Jest and in Vitest. */
export const lockMatchers: LockMatcherFunctions = {
  toHaveLocked(received: unknown, key: KeyPattern, { times, by, kind }: LockedHow = {}): Verdict {
    const locks = probeOf(received);
    const meant = locks.holdings.filter((each) => isMeant(key, each.key));
    const found = meant.filter(({ label, kind: own }) => (by ?? label) === label && (kind ?? own) === own);
    const pass = times === undefined ? found.length > 0 : found.length === times;
    const how = [times === undefined ? '' : ` ${times} times`, by ? ` by ${by}` : '', kind ? ` as a ${kind}` : ''].join('');
    return verdict(pass, (not) => `${shownKey(key)} ${not}to be locked${how}, but it was locked ${found.length} times so`, locks);
  },

  toHaveLockedInOrder(received: unknown, keys: readonly string[]): Verdict {
    const locks = probeOf(received);
    const taken = locks.holdings.map((each) => each.key).filter((key) => keys.includes(key));
    const pass = taken.length === keys.length && taken.every((key, index) => key === keys[index]);
    return verdict(pass, (not) => `${list(keys)} ${not}to be locked in this order, but the order was ${list(taken)}`, locks);
  },

  toHoldNothing(received: unknown): Verdict {
    const { held } = probeOf(received);
    const released = 'Expected something to be held, but all was released.';
    const unreleased = `Expected nothing to be held, but these leases were not released:\n${held.map(line).join('\n')}`;
    return { pass: held.length === 0, message: () => (held.length === 0 ? released : unreleased) };
  },

  toHaveWaited(received: unknown, key: KeyPattern, { atLeast = 0 }: { atLeast?: number } = {}): Verdict {
    const locks = probeOf(received);
    const events = locks.events.filter((event) => isMeant(key, event.key));
    const waits = events.flatMap((event) => {
      if (event.event === 'acquired') return event.via === 'free' ? [] : [event.waited];
      return event.event === 'timeout' || event.event === 'aborted' || event.event === 'failed' ? [event.waited] : [];
    });
    const isWaiting = atLeast === 0 && events.some((event) => event.event === 'waiting');
    const pass = isWaiting || waits.some((waited) => waited >= atLeast && waited > 0);
    const seen = waits.length === 0 ? 'nobody did' : `the waits were ${waits.map((waited) => `${Math.round(waited)} ms`).join(', ')}`;
    const long = atLeast ? ` for ${atLeast} ms` : '';
    return verdict(pass, (not) => `a caller ${not}to wait for ${shownKey(key)}${long}, but ${seen}`, locks);
  },

  toHaveTimedOut: happened('timeout', 'a caller', 'to give up waiting for'),
  toHaveLost: happened('lost', 'a holder', 'to lose'),
  toHaveReleasedEarly: happened('releasedEarly', 'a holder', 'to release before its transaction ended'),

  toHaveOverlapped(received: unknown, key: KeyPattern): Verdict {
    const locks = probeOf(received);
    const two = locks.overlap((each) => isMeant(key, each));
    const seen = two ? `these two did:\n${two.map(line).join('\n')}\n` : 'none did';
    return verdict(two !== undefined, (not) => `two holdings of ${shownKey(key)} ${not}to overlap, but ${seen}`, locks);
  },
};

function happened(name: 'timeout' | 'lost' | 'releasedEarly', who: string, what: string): (received: unknown, key: KeyPattern) => Verdict {
  return (received, key) => {
    const locks = probeOf(received);
    const count = locks.events.filter((event) => event.event === name && isMeant(key, event.key)).length;
    return verdict(count > 0, (not) => `${who} ${not}${what} ${shownKey(key)}, but ${count} did`, locks);
  };
}

function probeOf(received: unknown): LockProbe {
  if (received instanceof LockProbe) return received;
  throw new TypeError('Lock matchers take a LockProbe: const locks = module.get(LockProbe).');
}

function verdict(pass: boolean, text: (not: string) => string, { holdings }: LockProbe): Verdict {
  const all = (): string => (holdings.length === 0 ? 'Nothing was locked.' : `Locked:\n${holdings.map(line).join('\n')}`);
  return { pass, message: () => `Expected ${text(pass ? 'not ' : '')}.\n${all()}` };
}

function line({ key, kind, label, waited, state }: Holding): string {
  const by = label === undefined ? '' : ` by ${label}`;
  const wait = waited > 0 ? `, after ${Math.round(waited)} ms` : '';
  return `  "${key}" (${kind})${by}${wait}: ${state}`;
}

function list(keys: readonly string[]): string {
  return `[${keys.map((key) => `"${key}"`).join(', ')}]`;
}
