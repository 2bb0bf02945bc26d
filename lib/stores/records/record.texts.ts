// Reads what others have written. Anybody that may send to an inbox or write to the table can write anything, so nothing of it is trusted.
import { StoreError } from '../../core/model/errors.js';
import { LONGEST_MESSAGE, offerOf } from '../../core/store/inbox.js';
import { inParts } from '../../core/util/in-parts.js';
import type { Found } from './record.table.js';
import type { Hold, KeyRecord, LatchRecord, LeaseRecord, QueueEntry } from './record.work.js';

/** Characters of a piece. Postgres takes 8,000 bytes. */
const LONGEST_PIECE = 2000;

type Fields<T> = { readonly [Name in keyof T]?: unknown };

/**
 * Reads the text of a message: owners to wake, a line each; some only after so many milliseconds. False: some of it is no message, and was dropped.
 * It never throws.
 */
export function readMessage(text: string, wake: (owner: string, askIn?: number) => void): boolean {
  if (text.length > LONGEST_MESSAGE) return false;
  let isWhole = true;
  for (const line of text.split('\n')) {
    const [owner, askIn, ...others] = line.split('\t');
    const offer = offerOf(owner, askIn, others);
    if (offer) wake(offer.owner, offer.askIn);
    else isWhole = false;
  }
  return isWhole;
}

/** Joins lines to as few messages as possible, none of which is too long. */
export function inPieces(lines: readonly string[]): string[] {
  return inParts(lines, [LONGEST_PIECE + 1], (line) => [line.length + 1]).map((part) => part.join('\n'));
}

/** Reads the record of a key. @throws {StoreError} if it is not valid, or a kind of lock that this version does not know. */
export function recordOf(text: string, key: string): KeyRecord {
  try {
    const record = Object(JSON.parse(text)) as KeyRecord;
    if (record.kind === 'count-down latch' ? isLatch(record) : isLease(record)) return record;
  } catch {
    // It is no JSON.
  }
  throw new StoreError(`The record of "${key}" is not valid, or of a newer version of nestjs-distributed-lock.`, { key, transient: false });
}

/** Checks the reply of a table. @throws {StoreError} if a number of it is not valid: a token would not be either. */
export function foundOf(found: Found): Found {
  const { fence, time = 0 } = found;
  if (Number.isSafeInteger(fence) && fence >= 0 && Number.isFinite(time)) return found;
  throw new StoreError(`The store gave a reply that is not valid: fence ${fence}, time ${time}.`, { transient: false });
}

const KINDS: readonly unknown[] = ['mutex', 'read/write lock', 'semaphore'];

function isLease({ kind, permits, holds, queue, queueEndsAt }: Fields<LeaseRecord>): boolean {
  return KINDS.includes(kind) && [permits, queueEndsAt].every(Number.isFinite) && isListOf(holds, isHold) && isListOf(queue, isQueueEntry);
}

function isHold({ owner, count, endsAt, ttl, token, keepUntil = 0, inbox = '', stamp = '' }: Fields<Hold>): boolean {
  return [owner, inbox, stamp].every(isText) && [count, endsAt, ttl, keepUntil, token === null ? 0 : token].every(Number.isFinite);
}

function isQueueEntry({ owner, inbox, offer, count, rank, since, holding = [] }: Fields<QueueEntry>): boolean {
  return (
    [owner, inbox].every(isText) && [offer, count, rank, since].every(Number.isFinite) && Array.isArray(holding) && holding.every(isText)
  );
}

function isLatch({ id, count, round, endsAt, ttl, lines, waiters }: Fields<LatchRecord>): boolean {
  if (!isText(id) || ![count, round, endsAt, ttl].every(Number.isFinite) || !isSet(lines) || !isSet(waiters)) return false;
  const areLines = Object.values(lines).every((line) => Array.isArray(line) && line.length >= 3 && line.slice(0, 4).every(Number.isFinite));
  return areLines && Object.values(waiters).every(isText);
}

function isListOf(value: unknown, isOne: (entry: never) => boolean): boolean {
  return Array.isArray(value) && value.every((entry) => isOne(Object(entry) as never));
}

function isSet(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}
