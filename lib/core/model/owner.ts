import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';

const PROCESS = `${process.env['npm_package_name'] ?? 'node'}@${hostname()}:${process.pid}`;

/** A new owner id, `app@host:pid:uuid`. One tenure has one, and it is never used again: only so is "it is ours already" safe to answer. */
export function createOwner(): string {
  // Joined, since V8 keeps the parts of what is concatenated: the twenty of a UUID take five times its room.
  return [PROCESS, randomUUID()].join(':');
}

const KEPT = 'kept:';

/** Who has a key from an owner's release to the end of its minHold, as a store writes it. */
export function keptBy(owner: string): string {
  return KEPT + owner;
}

/** The owner id of a holder as a store writes it; `null`: there is none. */
export function ownerOf(holder: string | null | undefined): string | null {
  return (holder?.startsWith(KEPT) ? holder.slice(KEPT.length) : holder) || null;
}
