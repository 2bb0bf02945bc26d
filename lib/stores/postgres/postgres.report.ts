import type { StoreReport } from '../../core/store/lock-store.js';
import type { Row } from './postgres.connection.js';

export const OLDEST = 12;
const QUESTION = `SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int / 10000 AS major,
  pg_is_in_recovery() AS standby, current_setting('transaction_read_only') AS readonly, current_setting('synchronous_commit') AS commit,
  current_setting('fsync') AS fsync, current_setting('synchronous_standby_names') AS standbys,
  (SELECT count(*)::int FROM pg_stat_replication) AS replicas`;

/** What the server says of itself. One that does not answer says nothing. */
export async function reportOf(ask: (text: string) => Promise<readonly Row[]>, wakesWaiters: boolean): Promise<StoreReport> {
  const [row] = await ask(QUESTION).catch((): Row[] => []);
  if (!row) return { server: 'PostgreSQL', wakesWaiters, advice: [] };
  const advice = [
    ...(Number(row['major']) < OLDEST ? [`PostgreSQL ${String(row['version'])} is too old: locks need ${OLDEST} or later.`] : []),
  ];
  if (row['fsync'] === 'off') advice.push('PostgreSQL has fsync off: a crash of the machine can lose locks that are held. Turn it on.');
  if (row['commit'] === 'off') {
    advice.push('synchronous_commit is off: a crash of the server can lose locks that are held. Set it to on for this role.');
  }
  if (row['standbys'] === '' && Number(row['replicas']) > 0) {
    advice.push(
      'The replicas of this PostgreSQL server are asynchronous: a failover can lose locks that are held. Set synchronous_standby_names.',
    );
  }
  return { server: `PostgreSQL ${String(row['version']).split(' ')[0]}`, wakesWaiters, advice, refusal: refusalOf(row) };
}

function refusalOf({ standby, readonly }: Row): string | undefined {
  if (standby === true) return 'It is a standby, which is read-only: use the address of the primary, or target_session_attrs=read-write.';
  return readonly === 'on' ? 'Transactions are read-only here: set default_transaction_read_only = off for this role.' : undefined;
}
