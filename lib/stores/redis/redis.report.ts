import type { StoreReport } from '../../core/store/lock-store.js';
import type { RedisConnection } from './redis.connection.js';

const OLDEST = [6, 2] as const;

/** What the server says of itself. A user without the right to INFO learns nothing. */
export async function reportOf(connection: RedisConnection): Promise<StoreReport> {
  const info = await connection.request((client) => client.info?.() ?? Promise.resolve('')).catch(() => '');
  const text = typeof info === 'string' ? info : '';
  const valkey = field(text, 'valkey_version');
  const version = field(text, 'redis_version');
  const name = valkey === undefined ? 'Redis' : 'Valkey';
  const server = [name, valkey ?? version].filter((part) => part !== undefined).join(' ');
  return {
    server,
    wakesWaiters: !connection.client.isCluster,
    advice: [...ageAdvice(version), ...evictionAdvice(field(text, 'maxmemory_policy'))],
  };
}

function field(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1];
}

function ageAdvice(version = OLDEST.join('.')): string[] {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isTooOld = major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]);
  return isTooOld ? [`Redis ${version} is too old: locks need ${OLDEST.join('.')} or later.`] : [];
}

/** Every key of a lock has an end, so that the `volatile-` policies evict it as well. */
function evictionAdvice(policy = 'noeviction'): string[] {
  if (policy === 'noeviction') return [];
  return [`Redis has maxmemory-policy ${policy}: when its memory is full, it evicts locks that are held. Set it to noeviction.`];
}
