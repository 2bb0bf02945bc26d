/** Of each option of a call: a value of each class that it must not have. */
const NOT_WHOLE = [1.5, -1, NaN, -Infinity, 2 ** 53, '500', '', null, true, 5n, {}, [5], Symbol('five'), () => 5, Object.create(null)];

export const WRONG_OPTIONS = {
  keyTimeout: [0, 9, Infinity, ...NOT_WHOLE],
  retryCount: [Infinity, ...NOT_WHOLE],
  retryInterval: [0, Infinity, ...NOT_WHOLE],
  waitTimeout: NOT_WHOLE,
  minHold: [Infinity, ...NOT_WHOLE],
  maxHold: [0, Infinity, ...NOT_WHOLE],
  reentrant: ['true', 0, 1, null, {}],
  fair: ['yes', 0, null, []],
  renew: ['no', 0, null],
  label: [5, null, {}],
  onTimeout: ['ignore', 'Throw', '', null, true, 5, {}],
  onLost: ['skip', '', null, false, () => 'a'],
} satisfies Record<string, unknown[]>;

/** Of the options of one decorator or function that are whole numbers. */
export const wrongNumbers = (...more: unknown[]): unknown[] => [...more, ...NOT_WHOLE];

/** No option of any call, though like one, or inherited by all objects. */
export const UNKNOWN_NAMES = ['keyTimeOut', 'ttl', 'election', 'toString', '__proto__x'];
