import { inspect } from 'node:util';
import { StoreError } from '../../core/model/errors.js';

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
