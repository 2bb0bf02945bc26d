import { zookeeperStore } from '../../../lib/stores/zookeeper/zookeeper.store.js';
import { startZookeeperCluster } from '../../../test/support/zookeeper-server.js';
import { MembersStage } from '../members/stage.js';
import type { ZookeeperPlace } from './worker.js';

export async function startStage(): Promise<MembersStage> {
  const members = await startZookeeperCluster();
  const place: ZookeeperPlace = { hosts: members.map(({ connectionString }) => connectionString).join(), node: '/chaos' };
  const store = zookeeperStore({ connectionString: place.hosts + place.node });
  // ZOOKEEPER-4643: before 3.8.4 a member that was killed while it caught up may lead later, without the last writes.
  return new MembersStage({ members, place, store, restart: 'loss' });
}
