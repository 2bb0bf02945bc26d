import { readFileSync, readlinkSync } from 'node:fs';
import { hostname, uptime } from 'node:os';
import { ownerOf, partsOf } from '../../core/model/owner.js';
import { dateOf, now } from '../../core/util/clock.js';

/** The kernel's monotonic clock in milliseconds, the same for all processes of the host. */
export function clock(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000;
}

const NAMESPACE_OF_CLOCK = /\d+/.exec(read(() => readlinkSync('/proc/self/ns/time')))?.[0] ?? '';
/** The same for all that share a kernel and its clock, until it is started again. '': it is not known, and only a clock that went back tells. */
export const BOOT = read(() => `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}-${NAMESPACE_OF_CLOCK}`);
/** In which pid namespace the pids of this process are meant: containers have their own. */
const PID_NAMESPACE = read(() => readlinkSync('/proc/self/ns/pid'));
const HERE = `${hostname()}:${process.pid}`;

/** Milliseconds since 1970. */
export function startOfKernel(): number {
  return dateOf(now()) - uptime() * 1000;
}

/** The pid namespace of each process that is named in a record, by `host:pid`; '?': two have the same name. */
export type Processes = Readonly<Record<string, string>>;

/** The part of a lease record that names its holders and waiters. */
interface Owners {
  readonly holds?: { readonly owner: string; readonly keepUntil?: number; endsAt: number }[];
  queue?: { readonly owner: string }[];
}

/** The processes of the record that comes next, which this one writes: an owner's first record is always written by its own process. */
export function processesOf(record: string | null, last: Processes = {}): Processes {
  const processes: Record<string, string> = {};
  if (record === null) return processes;
  for (const name in last) if (isIn(record, name)) processes[name] = last[name] as string;
  if (isIn(record, HERE)) processes[HERE] = (processes[HERE] ?? PID_NAMESPACE) === PID_NAMESPACE ? PID_NAMESPACE : '?';
  return processes;
}

/**
 * The record without waiters in processes that are gone, and with their holds ended. A hold that may have a `minHold`, which outlives its
 * process, is left. A pid that is in use again counts as alive.
 */
export function withoutDead(record: string, processes: Processes): string {
  const dead = new Set(Object.keys(processes).filter((name) => processes[name] === PID_NAMESPACE && name !== HERE && isDead(name)));
  if (dead.size === 0) return record;
  const owners = JSON.parse(record) as Owners;
  const isGone = (owner: string): boolean => {
    const { host, pid } = partsOf(owner) ?? {};
    return dead.has(`${host}:${pid}`) && ownerOf(owner) === owner;
  };
  const time = clock();
  for (const hold of owners.holds ?? []) if (isGone(hold.owner) && (hold.keepUntil ?? 0) <= time) hold.endsAt = 0;
  if (owners.queue) owners.queue = owners.queue.filter(({ owner }) => !isGone(owner));
  return JSON.stringify(owners);
}

/** Only a process of this host and pid namespace may be asked for. */
function isDead(name: string): boolean {
  try {
    process.kill(Number(name.slice(name.lastIndexOf(':') + 1)), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

/** Makes a name that tells whether its process is gone; see {@link isOfDead}. */
export function nameOfProcess(uuid: string): string {
  return [process.pid, /\d+/.exec(PID_NAMESPACE)?.[0] ?? '', BOOT, uuid].join('_');
}

/** Whether the name was made by a process that is gone. */
export function isOfDead(name: string): boolean {
  const [pid = '', space, boot] = name.split('_');
  if (boot !== BOOT) return BOOT !== '';
  return space === (/\d+/.exec(PID_NAMESPACE)?.[0] ?? '') && isDead(`:${pid}`);
}

function isIn(record: string, name: string): boolean {
  return record.includes(`@${name}:`);
}

function read(file: () => string): string {
  try {
    return file();
  } catch {
    return '';
  }
}
