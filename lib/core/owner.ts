import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';

const PROCESS = `${process.env['npm_package_name'] ?? 'node'}@${hostname()}:${process.pid}`;

/** A new owner id, `app@host:pid:uuid`. One tenure has one, and it is never used again: only so is "it is ours already" safe to answer. */
export function createOwner(): string {
  return `${PROCESS}:${randomUUID()}`;
}
