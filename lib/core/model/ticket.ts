import { createHash, randomUUID } from 'node:crypto';
import { configError, UnsupportedPrimitiveError } from './errors.js';
import { checkKey } from './key.js';
import { processOf } from './owner.js';

/** The data that a process needs to take over the lease of another one. It is sent as text. */
export interface Ticket {
  /** Namespace included. */
  readonly key: string;
  /** The owner that has handed it over: for messages only. */
  readonly owner: string;
  /** Milliseconds of its `minHold` that were left. */
  readonly keepFor: number;
  /** The owner at the store until it is adopted, made of the text: that of a ticket that was changed, or guessed, is another one. */
  readonly from: string;
}

const PREFIX = 'ndl1.';

export function writeTicket(ticket: Omit<Ticket, 'from'>): { readonly text: string; readonly from: string } {
  const text = PREFIX + Buffer.from(JSON.stringify({ ...ticket, secret: randomUUID() })).toString('base64url');
  return { text, from: ownerIn(text, ticket.owner) };
}

/** Anybody who can write to a queue of jobs can write anything. @throws {LockConfigError} if it is not a ticket. */
export function readTicket(text: string): Ticket {
  try {
    const ticket = JSON.parse(Buffer.from(text.slice(PREFIX.length), 'base64url').toString()) as Ticket;
    const { key, owner, keepFor } = ticket;
    const isTicket = text.startsWith(PREFIX) && typeof owner === 'string' && Number.isSafeInteger(keepFor) && keepFor >= 0;
    if (checkKey(key) && isTicket) return { ...ticket, from: ownerIn(text, owner) };
  } catch {
    // It is no JSON.
  }
  throw configError('CALL', 'This is not a ticket of lease.handOver(), or it is one of a newer version of nestjs-distributed-lock.');
}

/** Logs and errors show it: a hash, from which nobody can make the ticket. */
function ownerIn(text: string, owner: string): string {
  return `${processOf(owner)}:handed-${createHash('sha256').update(text).digest('base64url')}`;
}

export function notHandedOver(key: string, why: string): UnsupportedPrimitiveError {
  return new UnsupportedPrimitiveError(`The lease of "${key}" cannot be handed over to another process: ${why}.`, { key });
}
