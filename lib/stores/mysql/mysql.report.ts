import type { StoreReport } from '../../core/store/lock-store.js';
import type { MysqlClient, Row } from './mysql.client.js';

const OLDEST = { MariaDB: [10, 6], MySQL: [8, 0] } as const;

/** What the server says of itself. */
export async function reportOf(client: MysqlClient): Promise<StoreReport> {
  const [row = []] = await client.run<Row[]>('SELECT VERSION(), @@innodb_flush_log_at_trx_commit').catch(() => [] as Row[]);
  const [text = '', flush = 1] = row as [string?, number?];
  const { name, version } = nameAndVersion(text);
  return {
    server: version === undefined ? name : `${name} ${version}`,
    wakesWaiters: false,
    advice: [...ageAdvice(name, version), ...commitAdvice(Number(flush))],
  };
}

/** Of what VERSION() gives. */
export function nameAndVersion(text: string): { name: keyof typeof OLDEST; version: string | undefined } {
  return { name: text.includes('MariaDB') ? 'MariaDB' : 'MySQL', version: /^(?:5\.5\.5-)?(\d+\.\d+\.\d+)/.exec(text)?.[1] };
}

export function ageAdvice(name: keyof typeof OLDEST, version?: string): string[] {
  const oldest = OLDEST[name];
  const [major = 0, minor = 0] = (version ?? oldest.join('.')).split('.').map(Number);
  const isTooOld = major < oldest[0] || (major === oldest[0] && minor < oldest[1]);
  return isTooOld ? [`${name} ${version} is too old: locks need ${oldest.join('.')} or later.`] : [];
}

function commitAdvice(flush: number): string[] {
  if (flush === 1) return [];
  return [`MySQL has innodb_flush_log_at_trx_commit = ${flush}: a crash of its host can forget locks that are held. Set it to 1.`];
}
