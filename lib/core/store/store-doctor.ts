import type { DoctorCheck, Purpose } from '../model/doctor-report.js';
import { defined } from '../model/check-options.js';
import { messageOf } from '../model/errors.js';

/** The checks that a store makes of its server. */
export interface StoreDoctor {
  /**
   * Makes the checks, also at startup. It never rejects, and changes nothing. `version` says what the server is, `location` where the locks are: of two
   * processes whose locations differ, neither sees the locks of the other. A `role` that is `'bad'` gives no locks.
   *
   * @param namespace put before all keys.
   */
  checks(namespace: string): Promise<readonly DoctorCheck[]>;
}

/** A check: where no answer means that the locks may be unfit, also for what and why. */
type Known = readonly [name: string, touches: readonly string[], purpose?: Purpose, because?: string];

/** The checks of this library. */
const CHECKS = {
  version: ['version', ['G2']],
  location: ['where the locks are', ['G2']],
  role: ['takes writes, for all keys', ['G1', 'G2']],
  eviction: ['maxmemory-policy', ['G2'], 'efficiency', 'it is unknown whether this server evicts locks'],
  persistence: ['persistence', ['G2'], 'correctness', 'it is unknown whether this server has written a grant to the disk when it answers'],
  durability: ['what a crash can lose', ['G2'], 'correctness', 'it is unknown whether this server keeps what it has granted'],
  replication: ['replication', ['G2'], 'correctness', 'it is unknown whether this server has replicas'],
  space: ['room for writes', ['G2'], 'efficiency', 'it is unknown whether this server still takes writes'],
  table: ['the table', ['G1']],
  connections: ['connections', ['G9']],
  'file-system': ['where the directory is', ['G2'], 'efficiency', 'it is unknown where the lock directory is'],
  path: ['path of the directory', ['G2']],
  scope: ['callers that are excluded', ['G2']],
  probe: ['a lock, tried', ['G1']],
  'wake-ups': ['waiters are woken', ['G8']],
} satisfies Record<string, Known>;

/** The result of a check. No state: `'ok'`. */
export type Finding = Pick<DoctorCheck, 'seen' | 'limits'> & Partial<Pick<DoctorCheck, 'state' | 'advice'>>;

/** Locks work, with a limit. @param because why they are not fit for correctness. */
export function warning(seen: string, advice: string, because?: string): Finding {
  return { state: 'warn', seen, advice, ...(because !== undefined && { limits: { purpose: 'correctness', because } }) };
}

/** Locks do not work, or can be lost at any time. @param because why they are not fit for the purpose. */
export function bad(seen: string, advice: string, because: string, purpose: Purpose = 'efficiency'): Finding {
  return { state: 'bad', seen, advice, limits: { purpose, because } };
}

export function versionFinding(name: string, version: string, oldest: string): Finding {
  const seen = `${name} ${version}`;
  return isOlder(version, oldest) ? bad(seen, `Locks need ${oldest} or later.`, 'this server is too old') : { seen };
}

export function isOlder(version: string, other: string): boolean {
  return version.localeCompare(other, 'en', { numeric: true }) < 0;
}

/** Makes checks. It never rejects: a check that fails is `'unknown'`. */
export function checksOf(looks: { readonly [Id in keyof typeof CHECKS]?: () => Finding | Promise<Finding> }): Promise<DoctorCheck[]> {
  return Promise.all(
    Object.entries(looks).map(async ([id, look]): Promise<DoctorCheck> => {
      const [name, touches, purpose, because] = CHECKS[id as keyof typeof CHECKS] as Known;
      const found = await Promise.resolve()
        .then(look)
        .catch((error: unknown): Finding => {
          const seen = `not known: ${messageOf(error).split('\n')[0]}`;
          return { state: 'unknown', seen, advice: 'Look at it yourself, or ask with a user who may.' };
        });
      const { state = 'ok', seen, advice = '' } = found;
      const unseen = state === 'unknown' && purpose && because !== undefined ? { purpose, because } : undefined;
      return defined({ id, name, touches, state, seen, advice, limits: found.limits ?? unseen });
    }),
  );
}

/** `host:port`, without a user. */
export function addressOf(host: string, port: number | string): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The check of a store that has none. */
export function unknownDurability(): Promise<DoctorCheck[]> {
  const advice = 'Read what its database promises for a commit that was answered.';
  return checksOf({ durability: () => ({ state: 'unknown', seen: 'this store has no checks of its own', advice }) });
}
