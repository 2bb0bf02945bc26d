import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';

let defaultApp: string | undefined;

/** `kept:` marks a holder in the store that has released its key, which stays taken for its `minHold`. */
const APP = /^(?!kept:)[^\s\p{Cc}]{1,100}$/u;

/** Whether a text can be the first part of owner ids. */
export function isApp(value: unknown): value is string {
  return typeof value === 'string' && APP.test(value);
}

/**
 * A maker of owner ids, `app@host:pid:uuid`, with `;` and the trace of the caller where telemetry gives one. Each tenure has its own. An id that is
 * used twice could get a key of an earlier tenure.
 */
export function ownerIds(app = (defaultApp ??= nameOfProgram())): (trace?: string) => string {
  const process = `${app}@${hostname()}:${globalThis.process.pid}`;
  // `join` makes a flat string. V8 would keep the parts of a concatenation, which for a UUID take five times the memory (`npm run bench -- w5`).
  return (trace) => [process, trace === undefined ? randomUUID() : `${randomUUID()};${trace}`].join(':');
}

/** `app@host:pid`, of an owner id or of its parts. */
export function processOf(of: string | { readonly app: string; readonly host: string; readonly pid: number }): string {
  return typeof of === 'string' ? of.slice(0, of.lastIndexOf(':')) || of : `${of.app}@${of.host}:${of.pid}`;
}

/** The name in the package.json from which npm has started the program, else in the nearest one. */
function nameOfProgram(): string {
  const { npm_package_name: started } = process.env;
  if (isApp(started)) return started;
  for (let folder = dirname(process.argv[1] ?? '.'), parent; ; folder = parent) {
    try {
      const { name } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name?: unknown };
      if (isApp(name)) return name;
    } catch {
      // There is none here, or it cannot be read.
    }
    parent = dirname(folder);
    if (parent === folder) return 'node';
  }
}

const KEPT = 'kept:';

/** The holder that a store writes from an owner's release to the end of its minHold. */
export function keptBy(owner: string): string {
  return KEPT + owner;
}

/** The owner id in what a store writes as the holder; `null`: there is none. */
export function ownerOf(holder: string | null | undefined): string | null {
  return (holder?.startsWith(KEPT) ? holder.slice(KEPT.length) : holder) || null;
}

const OWNER = /^(\S*)@([^@]*):(\d+):([^:;]+)(;[^:]*)?$/;

/** The parts of an owner id; `undefined`: it is not one. */
export function partsOf(owner: string): { app: string; host: string; pid: number; uuid: string } | undefined {
  const [, app, host = '', pid, uuid = ''] = OWNER.exec(owner) ?? [];
  return app === undefined ? undefined : { app, host, pid: Number(pid), uuid };
}

/** How a waiter names a key that its call chain holds. An owner that has lost the key has another uuid than the one that has it now. */
export function holdingOf({ owner, key }: { readonly owner: string; readonly key: string }): string {
  return `${partsOf(owner)?.uuid ?? owner} ${key}`;
}
