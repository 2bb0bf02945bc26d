import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';

const PROCESS = `${process.env['npm_package_name'] ?? 'node'}@${hostname()}:${process.pid}`;

/** A new owner id, `app@host:pid:uuid`. Each tenure has its own. An id that was used again could get a key that an earlier tenure had. */
export function createOwner(): string {
  // `join` makes a flat string. V8 would keep the parts of a concatenation, which for a UUID take five times the memory.
  return [PROCESS, randomUUID()].join(':');
}

const KEPT = 'kept:';

/** What a store writes as the holder from an owner's release to the end of its minHold. */
export function keptBy(owner: string): string {
  return KEPT + owner;
}

/** The owner id in what a store writes as the holder; `null`: there is none. */
export function ownerOf(holder: string | null | undefined): string | null {
  return (holder?.startsWith(KEPT) ? holder.slice(KEPT.length) : holder) || null;
}
