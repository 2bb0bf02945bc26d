import { inspect } from 'node:util';
import { configError, type LockConfigError } from './errors.js';

/** Returns what the option must be, for the message; `undefined`: the value is right. */
export type Check = (value: unknown) => string | undefined;

/** The options that are known, with what each must be. */
export type Checks = Readonly<Record<string, Check>>;

export function integerFrom(least: number, most = Infinity): Check {
  const expected = most === Infinity ? `a whole number of at least ${least}` : `a whole number from ${least} to ${most}`;
  return (value) => (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most ? undefined : expected);
}

export function oneOf(...values: unknown[]): Check {
  const names = values.map((value) => JSON.stringify(value));
  const expected = [names.slice(0, -1).join(', '), ...names.slice(-1)].join(' or ');
  return (value) => (values.includes(value) ? undefined : expected);
}

export function ofType(type: 'string' | 'function' | 'object'): Check {
  return (value) => (typeof value === type && value !== null ? undefined : `${type === 'object' ? 'an' : 'a'} ${type}`);
}

/** A URL. @param tls what asks for TLS, or for none: the client ignores other parameters of TLS. @param way the same for the message. */
export function urlWith(start: RegExp, example: string, tls = /./, way = ''): Check {
  const wrong = `a URL such as ${example}, with %25 for a % in the password`;
  return (value) => {
    if (typeof value !== 'string' || !start.test(value)) return wrong;
    try {
      const { username, password, pathname, searchParams } = new URL(value, 'path://of-a-socket');
      decodeURIComponent(username + password + pathname);
      const asks = ([name, answer]: [string, string]): boolean => /ssl|tls/i.test(name) && !/^(false|0|null|disabled?)$/i.test(answer);
      const isKnown = tls.test(value) || ![...searchParams].some(asks);
      return isKnown ? undefined : `a URL that asks for TLS by ${way}, since its other parameters of TLS have no effect`;
    } catch {
      return wrong;
    }
  };
}

/** A wrong value for a message, by its type: text and objects may have a password inside, also where none is expected. */
export function shown(value: unknown, expected = ''): string {
  const type = Array.isArray(value) ? 'array' : typeof value;
  const isHarmless = value === '' || value === null || /undefined|boolean/.test(type);
  return isHarmless || (type === 'number' && /number|milliseconds/.test(expected)) ? inspect(value) : `this ${type}`;
}

/**
 * Checks names and values; an option that is `undefined` counts as not given.
 *
 * @param where what the options belong to, for the message.
 * @param required an option that must be given.
 * @param example what to write where it is not.
 * @throws {LockConfigError} naming the option.
 */
export function checkOptions(options: unknown, where: string, checks: Checks, required?: string, example?: string): void {
  if (options === undefined && required === undefined) return;
  if (typeof options !== 'object' || options === null) {
    const needed = required === undefined ? '' : ` with "${required}"`;
    throw configError('OPTION', `${where}: the options must be an object${needed}.`);
  }
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(checks, name)) throw unknownOption(name, where, Object.keys(checks));
  }
  // Also inherited ones.
  for (const name in checks) {
    const value: unknown = options[name as keyof typeof options];
    const expected = value === undefined && name !== required ? undefined : checks[name]?.(value);
    if (expected === undefined) continue;
    const wayOut = example !== undefined && value === undefined ? `: write ${example}` : '';
    throw configError('OPTION', `${where}: "${name}" must be ${expected}, not ${shown(value, expected)}${wayOut}.`);
  }
}

/** @throws {LockConfigError} unless exactly one of these options is given. */
export function checkOneOf(options: object, where: string, names: readonly string[]): void {
  const given = names.filter((name) => options[name as keyof typeof options] !== undefined);
  if (given.length === 1) return;
  const unset = given.length === 0 ? names.find((name) => name in options) : undefined;
  if (unset !== undefined) throw configError('OPTION', `${where}: "${unset}" is undefined: is the variable set that it comes from?`);
  throw configError('OPTION', `${where}: give exactly one of ${names.join(', ')}, not ${given.join(' and ') || 'none'}.`);
}

/** Names in other libraries, and what to write here. */
const OTHER_NAMES: readonly (readonly [RegExp, string])[] = [
  [/^(ttl|expire|expiry|duration|leaseTime|leaseTimeout|lockTimeout|releaseTime)$/, 'keyTimeout'],
  [/^(timeout|wait|waitTime|acquireTimeout)$/, 'waitTimeout'],
  [/^(retries|retry|attempts|maxAttempts)$/, 'retryCount'],
  [/^retryDelay$/, 'retryInterval'],
  [/^autoExtend$/, 'renew'],
  [/^(name|lockKey|resource)$/, 'value'],
  [/^keys$/, 'key'],
  [/^skip$/, "onTimeout: 'skip'"],
  [/^keyPrefix$/, 'namespace'],
  [/^limit$/, 'permits'],
];

/** An error that says what to write for a name of another library, else which options there are. */
function unknownOption(name: string, where: string, known: readonly string[]): LockConfigError {
  const option = OTHER_NAMES.find(([names, text]) => names.test(name) && known.includes(text.replace(/:.*/, '')))?.[1];
  const advice = option === undefined ? `The options are ${known.join(', ')}.` : `Write ${option}.`;
  return configError('UNKNOWN_OPTION', `${where}: unknown option "${name}". ${advice}`);
}

export function only(checks: Checks, ...names: string[]): Checks {
  return Object.fromEntries(Object.entries(checks).filter(([name]) => names.includes(name)));
}

/** Without the options that are `undefined`. */
export function defined<T extends object>(options: T): T {
  const result = { ...options };
  for (const name of Object.keys(result) as (keyof T)[]) if (result[name] === undefined) delete result[name];
  return result;
}
