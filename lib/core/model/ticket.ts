import { configError, UnsupportedPrimitiveError } from './errors.js';
import { checkKey } from './key.js';

/** The data that a process needs to take over the lease of another one. It is sent as text. */
export interface Ticket {
  /** Namespace included. */
  readonly key: string;
  readonly kind: string;
  readonly owner: string;
  readonly token: number | null;
  /** In milliseconds since 1970, by the clock of the process that hands it over: for messages only. */
  readonly endsAt: number;
  /** Milliseconds of its `minHold` that were left. */
  readonly keepFor: number;
}

const PREFIX = 'ndl1.';

export function writeTicket(ticket: Ticket): string {
  return PREFIX + Buffer.from(JSON.stringify(ticket)).toString('base64url');
}

/** Anybody who can write to a queue of jobs can write anything. @throws {LockConfigError} if it is not a ticket. */
export function readTicket(text: string): Ticket {
  try {
    const ticket = JSON.parse(Buffer.from(text.slice(PREFIX.length), 'base64url').toString()) as Ticket;
    const { key, kind, owner, token, endsAt, keepFor } = ticket;
    const areNumbers = [token ?? 0, endsAt, keepFor].every((each) => Number.isSafeInteger(each) && each >= 0);
    const isTicket = text.startsWith(PREFIX) && typeof owner === 'string' && areNumbers;
    if (checkKey(key) && isTicket && !Number.isNaN(new Date(endsAt).getTime()) && kind === 'mutex') return ticket;
  } catch {
    // It is no JSON.
  }
  throw configError('CALL', 'This is not a ticket of lease.handOver(), or it is one of a newer version of nestjs-distributed-lock.');
}

export function notHandedOver(key: string, why: string): UnsupportedPrimitiveError {
  return new UnsupportedPrimitiveError(`The lease of "${key}" cannot be handed over to another process: ${why}.`, { key });
}
