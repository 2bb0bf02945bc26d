import { checkOptions, integerFrom, ofType, type Check } from './check-options.js';
import { checkKey } from './key.js';
import { WARNINGS, type LockLogger, type WarningCode } from './lock-log.js';
import { checkHolds, USING_CHECKS, type UsingOptions } from './options.js';
import { isApp } from './owner.js';
import type { Telemetry } from './telemetry.js';

/** How long a process may hand a key to its own callers while another process waits for it. */
export interface LocalQueueOptions {
  /** How many holders in a row, from 1 to 1,000,000. As many fencing tokens are reserved at a time. Default 512. */
  handOvers?: number;
  /** Milliseconds from the first grant, at most 1,000,000. A longer hold is not cut short. Default 50. */
  time?: number;
}

/** Options of {@link Locks}. */
export interface LocksOptions {
  /** Put before every key. Default `''`. */
  namespace?: string;
  /** The first part of the owner ids, `app@host:pid:uuid`. Default: the name in the program's package.json. */
  app?: string;
  /** For all options that a lock leaves out. A `signal` cannot be a default. */
  defaults?: Omit<UsingOptions, 'signal'>;
  /** Receives warnings: lost leases, long waits, a store that is away, failed listeners, a lagging event loop. `false`: none. Default: the console. */
  logger?: LockLogger | false;
  /** Codes of warnings that are not logged, such as `['NDL_SLOW_WAIT']`. Default: none. */
  silence?: readonly WarningCode[];
  /** A caller that has waited for this many milliseconds causes a warning, once a minute for each label. `Infinity`: none. Default 30,000. */
  slowWait?: number;
  /** Milliseconds for which {@link Locks.close} waits for running work. Default 10,000. */
  shutdownTimeout?: number;
  /** Default: 512 hand-overs or 50 ms. */
  localQueue?: LocalQueueOptions;
  /** Metrics and traces: `prometheus()`, `openTelemetry()`, or both. Default: none, which costs nothing. */
  telemetry?: Telemetry | readonly Telemetry[];
}

/** Tokens follow a clock. A larger block of them would get ahead of it. */
const MOST_HAND_OVERS = 1_000_000;
const LOCAL_QUEUE_CHECKS = { handOvers: integerFrom(1, MOST_HAND_OVERS), time: integerFrom(0, MOST_HAND_OVERS) };
const { signal: _signal, ...DEFAULTS_CHECKS } = USING_CHECKS;
const SLOW_WAIT = integerFrom(1);
/** @internal */
export const LOCKS_CHECKS: Readonly<Record<keyof LocksOptions, Check>> = {
  namespace: ofType('string'),
  app: (value: unknown) => (isApp(value) ? undefined : 'a name of 1–100 characters without spaces, which does not begin with "kept:"'),
  defaults: () => undefined,
  logger: (value: unknown) =>
    value === false || ('warn' in Object(value) && 'error' in Object(value))
      ? undefined
      : 'an object with the methods warn and error, or false',
  silence: (value: unknown) =>
    Array.isArray(value) && value.every((code) => Object.hasOwn(WARNINGS, code as string))
      ? undefined
      : 'a list of codes of warnings, such as ["NDL_SLOW_WAIT"]',
  slowWait: (value: unknown) => (value === Infinity || !SLOW_WAIT(value) ? undefined : 'a whole number of at least 1, or Infinity'),
  shutdownTimeout: integerFrom(0),
  localQueue: () => undefined,
  telemetry: (value: unknown) =>
    [value].flat().every((each) => typeof (each as Telemetry | null)?.observe === 'function')
      ? undefined
      : 'prometheus(), openTelemetry() or a list of them',
};

/** @throws {LockConfigError} naming the option. */
export function checkLocksOptions(options: LocksOptions): void {
  checkOptions(options ?? null, 'Locks', LOCKS_CHECKS);
  const { namespace = '', defaults, localQueue } = options;
  if (namespace !== '') checkKey(`${namespace}key`, 'Locks: a key with this "namespace"');
  checkOptions(defaults, 'Locks: "defaults"', DEFAULTS_CHECKS);
  checkHolds(defaults ?? {}, 'Locks: "defaults": ');
  checkOptions(localQueue, 'Locks: "localQueue"', LOCAL_QUEUE_CHECKS);
}
