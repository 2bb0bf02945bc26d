import { inspect } from 'node:util';
import { configError, StoreError } from '../../core/model/errors.js';

/**
 * A key in the same Cluster slot: with the lock's own hash tag, or the whole of its name as one, which ioredis puts its prefix before.
 *
 * @throws {LockConfigError} if the key itself looks like one of these.
 */
export function keyBeside(key: string, what: 'fence' | 'queue', keyPrefix: string): string {
  if (!key.includes('{')) return `{${keyPrefix}${key}}:${what}`;
  if (/:(fence|queue)$/.test(key)) {
    throw configError('KEY', `On Redis a key with a hash tag must not end in ":fence" or ":queue": "${key}".`, { key });
  }
  // Two colons: the lock `{a}` is another one than `a`.
  return `${key}::${what}`;
}

export function keyAlone(key: string): string[] {
  return [key];
}

export function withFenceAndQueue(key: string, keyPrefix: string): string[] {
  return [key, keyBeside(key, 'fence', keyPrefix), keyBeside(key, 'queue', keyPrefix)];
}

export function withQueue(key: string, keyPrefix: string): string[] {
  return [key, keyBeside(key, 'queue', keyPrefix)];
}

/** The lock of a fence or a queue, by the name that the server has for it, prefix included; `undefined`: it is not one. */
export function lockOfName(name: string, keyPrefix: string): string | undefined {
  if (!name.startsWith(keyPrefix)) return undefined;
  const own = name.slice(keyPrefix.length).replace(/:(fence|queue)$/, '');
  if (own.endsWith(':')) return own.includes('{') ? own.slice(0, -1) : undefined;
  return own.startsWith(`{${keyPrefix}`) && own.endsWith('}') ? own.slice(1 + keyPrefix.length, -1) : undefined;
}

/** The text, as a pattern of Redis that only it matches. */
export function globOf(text: string): string {
  return text.replaceAll(/[*?[\]\\^]/g, (special) => `\\${special}`);
}

/** A reply that no script of ours gives. What was asked for may have been done. */
export function unexpected(reply: unknown): StoreError {
  const shown = inspect(reply, { depth: 2, breakLength: Infinity }).slice(0, 200);
  return new StoreError(`Unexpected reply from Redis: ${shown}.`, { transient: false });
}

/** @throws {StoreError} if it is anything else; clients may give integers as strings. */
export function millisecondsOf(reply: unknown): number {
  const value = typeof reply === 'number' || (typeof reply === 'string' && reply !== '') ? Number(reply) : NaN;
  if (!Number.isFinite(value)) throw unexpected(reply);
  return value;
}

/** @throws {StoreError} if it is not a safe one. */
export function integerOf(reply: unknown): number {
  const value = millisecondsOf(reply);
  if (!Number.isSafeInteger(value)) throw unexpected(reply);
  return value;
}

/** @throws {StoreError} if it is anything else. */
export function textOf(reply: unknown): string {
  if (typeof reply !== 'string') throw unexpected(reply);
  return reply;
}

/** @throws {StoreError} if it is no list of so many. */
export function listOf(reply: unknown, length?: number): readonly unknown[] {
  if (!Array.isArray(reply) || (length !== undefined && reply.length !== length)) throw unexpected(reply);
  return reply;
}

/** 1 is yes, 0 is no. @throws {StoreError} if it is anything else. */
export function isYes(reply: unknown): boolean {
  const value = integerOf(reply);
  if (value !== 0 && value !== 1) throw unexpected(reply);
  return value === 1;
}
