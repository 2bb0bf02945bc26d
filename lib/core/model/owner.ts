import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';

let defaultApp: string | undefined;

/**
 * What makes owner ids, `app@host:pid:uuid`, with `;` and the trace of the caller where telemetry gives one. Each tenure has its own. An id that was
 * used again could get a key that an earlier tenure had.
 */
export function ownerIds(app = (defaultApp ??= nameOfProgram())): (trace?: string) => string {
  const process = `${app}@${hostname()}:${globalThis.process.pid}`;
  // `join` makes a flat string. V8 would keep the parts of a concatenation, which for a UUID take five times the memory.
  return (trace) => [process, trace === undefined ? randomUUID() : `${randomUUID()};${trace}`].join(':');
}

/** The name in the package.json that npm has started, else in the one nearest to the program. */
function nameOfProgram(): string {
  const { npm_package_name: started } = process.env;
  if (started !== undefined) return started;
  for (let folder = dirname(process.argv[1] ?? '.'), parent; ; folder = parent) {
    try {
      const { name } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name?: unknown };
      if (typeof name === 'string' && name !== '') return name;
    } catch {
      // None here, or none that can be read.
    }
    parent = dirname(folder);
    if (parent === folder) return 'node';
  }
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
