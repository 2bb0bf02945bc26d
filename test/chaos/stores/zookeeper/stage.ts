import { isOlder } from '../../../../lib/core/store/store-doctor.js';
import { zookeeperStore } from '../../../../lib/stores/zookeeper/zookeeper.store.js';
import { startZookeeperCluster } from '../../../support/zookeeper-server.js';
import { MembersStage } from '../members/stage.js';
import type { ZookeeperTarget } from './worker.js';

/** The oldest version that was put through restarts, and lost nothing. */
const KEEPS = '3.9.6';

export async function startStage(): Promise<MembersStage> {
  const members = await startZookeeperCluster();
  const target: ZookeeperTarget = { hosts: members.map(({ connectionString }) => connectionString).join(), node: '/chaos' };
  const store = zookeeperStore({ connectionString: target.hosts + target.node });
  // ZOOKEEPER-4643, 4925: in older versions a member that was killed while it caught up may lead later, without the last writes.
  const forgets = isOlder(await members[0]!.version(), KEEPS);
  return new MembersStage({ members, target, store, ...(forgets && { restart: 'loss' }) });
}
