import { zookeeperStore } from '../../../lib/stores/zookeeper/zookeeper.store.js';
import { startZookeeperCluster, type ZookeeperServer } from '../../../test/support/zookeeper-server.js';
import { MembersStage } from '../members/stage.js';
import type { ZookeeperPlace } from './worker.js';

export async function startStage(): Promise<MembersStage> {
  const members = await startZookeeperCluster();
  const place: ZookeeperPlace = { hosts: members.map(({ connectionString }) => connectionString).join(), node: '/chaos' };
  const store = zookeeperStore({ connectionString: place.hosts + place.node });
  return new MembersStage({ members, place, store, leads: (member: ZookeeperServer) => member.leads() });
}
