import type { DoctorCheck } from '../../../core/model/doctor-report.js';
import { bad, checksOf, versionFinding, warning, type Finding } from '../../../core/store/store-doctor.js';
import type { EtcdClient } from '../etcd.client.js';

const OLDEST = '3.4';
/** Bytes: the quota of a server that has no other setting. */
const QUOTA = 2 * 1024 ** 3;

interface Status {
  readonly header: { readonly cluster_id: string };
  readonly version: string;
  readonly leader?: string;
  readonly isLearner?: boolean;
  readonly dbSize?: string;
  readonly dbSizeInUse?: string;
}

/** Examines a cluster by all of its endpoints. @param prefix put before all keys. */
export function etcdChecks(client: EtcdClient, prefix: string): Promise<DoctorCheck[]> {
  const statuses = Promise.allSettled(client.endpoints.map((endpoint) => client.askAt<Status>(endpoint, '/v3/maintenance/status', {})));
  const answered = async (): Promise<Status[]> => {
    const found = (await statuses).flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    if (found.length > 0) return found;
    throw ((await statuses)[0] as PromiseRejectedResult).reason;
  };
  return checksOf({
    async location() {
      // From 3.5.28 on, only a user with the role `root` may ask for the status, until a later version.
      await answered().catch(() => client.ask('/v3/kv/range', { key: Buffer.from(prefix).toString('base64'), count_only: true }));
      return { seen: `at ${[...client.endpoints].sort().join(', ')}, prefix ${JSON.stringify(prefix)}` };
    },
    async version() {
      const versions = (await answered()).map(({ version }) => version);
      return versionFinding('etcd', versions.sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))[0]!, OLDEST);
    },
    role: async () => roleOf(await answered(), client.endpoints.length),
    async replication() {
      const { members = [] } = await client.ask<{ members?: { isLearner?: boolean }[] }>('/v3/cluster/member/list', {});
      const voters = members.filter(({ isLearner }) => !isLearner).length;
      const seen = `${voters} ${voters === 1 ? 'member votes' : 'members vote'}`;
      if (voters >= 3) return { seen };
      return warning(seen, 'Run three or five members.', voters === 1 ? 'a lost disk loses all locks' : undefined);
    },
    async space() {
      const { alarms = [] } = await client.ask<{ alarms?: { alarm: string }[] }>('/v3/maintenance/alarm', { action: 'GET' });
      return spaceOf(
        await answered(),
        alarms.map(({ alarm }) => alarm),
      );
    },
  });
}

function roleOf(statuses: readonly Status[], endpoints: number): Finding {
  const clusters = new Set(statuses.map(({ header }) => header.cluster_id)).size;
  if (clusters > 1)
    return bad(`endpoints of ${clusters} clusters`, 'Give the members of one cluster only.', 'each cluster would grant the same key');
  const led = statuses.filter(({ leader = '0' }) => leader !== '0');
  const leaders = led.filter(({ isLearner }) => !isLearner).length;
  if (leaders === 0 && led.length > 0) return bad('learners only', 'Give the members that vote.', 'nothing can be written here');
  if (leaders === 0)
    return bad('a cluster without a leader', 'Start its other members: more than half must run.', 'nothing can be written here');
  const seen = `${leaders} of ${endpoints} endpoints know a leader; no clock of a server takes part`;
  return leaders === endpoints ? { seen } : warning(seen, 'Look at the members that do not answer, have no leader, or are learners.');
}

/** Each change stays as a revision until it is compacted. When the quota is used up, nothing can be written: no release either. */
function spaceOf(statuses: readonly Status[], alarms: readonly string[]): Finding {
  const size = Math.max(...statuses.map(({ dbSize }) => Number(dbSize ?? 0)));
  const used = Math.max(...statuses.map(({ dbSizeInUse, dbSize }) => Number(dbSizeInUse ?? dbSize ?? 0)));
  const seen = `${megabytes(size)} MB, of them ${megabytes(used)} in use`;
  const advice = 'Start etcd with --auto-compaction-retention=1h, compact, defragment, and disarm the alarm.';
  if (alarms.includes('NOSPACE')) return bad(`${seen}; alarm NOSPACE`, advice, 'nothing can be written here');
  if (alarms.includes('CORRUPT')) return bad('alarm CORRUPT', 'Replace the member whose data differ.', 'its members have different data');
  if (used > QUOTA / 2) return warning(seen, 'Start etcd with --auto-compaction-retention=1h: it keeps all old revisions else.');
  return { seen };
}

function megabytes(bytes: number): string {
  return (bytes / 1024 ** 2).toFixed(0);
}
