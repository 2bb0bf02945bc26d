import { zookeeperStore } from '../../../../lib/stores/zookeeper/zookeeper.store.js';
import { ZookeeperSession } from '../../../../lib/stores/zookeeper/zookeeper.session.js';
import { ZookeeperTable } from '../../../../lib/stores/zookeeper/zookeeper.table.js';
import { observedTable, recordStore } from '../../../../lib/stores/records/record.store.js';
import type { OpenedStore, Opening } from '../store.js';

export interface ZookeeperTarget {
  hosts: string;
  node: string;
}

export function open({ hosts, node }: ZookeeperTarget, { requestTimeout, breakTable }: Opening): OpenedStore {
  const session = () =>
    new ZookeeperSession({ client: undefined, hosts, root: `${node}/nestjs-distributed-lock`, auth: [], acl: undefined }, requestTimeout);
  const store = breakTable
    ? recordStore(breakTable(observedTable(new ZookeeperTable(session()))))
    : zookeeperStore({ connectionString: hosts + node, requestTimeout });
  return { store };
}
