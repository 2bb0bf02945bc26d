import { zookeeperStore } from '../../../../lib/stores/zookeeper/zookeeper.store.js';
import { ZookeeperSession } from '../../../../lib/stores/zookeeper/zookeeper.session.js';
import { ZookeeperTable } from '../../../../lib/stores/zookeeper/zookeeper.table.js';
import { observedTable, recordStore, type RecordTable } from '../../../../lib/stores/records/record.store.js';
import type { Random } from '../../random.js';
import type { OpenedStore } from '../store.js';

export interface ZookeeperTarget {
  hosts: string;
  node: string;
}

export function open(target: unknown, random: Random, breakTable?: (table: RecordTable) => RecordTable): OpenedStore {
  const { hosts, node } = target as ZookeeperTarget;
  const requestTimeout = random.pick([300, 600, 1_000]);
  const session = () =>
    new ZookeeperSession({ client: undefined, hosts, root: `${node}/nestjs-distributed-lock`, auth: [], acl: undefined }, requestTimeout);
  const store = breakTable
    ? recordStore(breakTable(observedTable(new ZookeeperTable(session()))))
    : zookeeperStore({ connectionString: hosts + node, requestTimeout });
  return { store };
}
