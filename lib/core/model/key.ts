import { configError } from './errors.js';

const LONGEST = 512;
/** Most keys match it, which saves the other checks. */
const PLAIN = new RegExp(`^[ -z|~]{1,${LONGEST}}$`);

/**
 * Returns the key if it is one: 1–512 characters, none of them a control character, braces only as one Redis Cluster hash tag.
 *
 * @param subject begins the message.
 * @throws {LockConfigError} if it is wrong.
 */
export function checkKey(key: unknown, subject = "A lock's key"): string {
  const problem = problemOf(key);
  if (problem !== undefined) throw configError('KEY', `${subject} ${problem}.`, { key: typeof key === 'string' ? key : undefined });
  return key as string;
}

function problemOf(key: unknown): string | undefined {
  if (Array.isArray(key)) return 'must be a string: several keys are taken by multiLock([…])';
  if (typeof key !== 'string') return `must be a string, not ${key === null ? 'null' : typeof key}`;
  if (PLAIN.test(key)) return undefined;
  if (key === '') return 'must not be empty';
  if (key.length > LONGEST)
    return `must have at most ${LONGEST} characters, this one has ${key.length}: hash the long part (paramLock does)`;
  if (/\p{Cc}/u.test(key)) return `must not contain control characters: ${JSON.stringify(key)}`;
  if (/\p{Surrogate}/u.test(key)) return `must be well-formed Unicode: ${JSON.stringify(key)}`;
  if (/[{}]/.test(key) && !/^[^{}]*\{[^{}]+\}[^{}]*$/.test(key)) {
    return `may contain braces only as one hash tag, such as "order:{42}": ${JSON.stringify(key)}`;
  }
  return undefined;
}
