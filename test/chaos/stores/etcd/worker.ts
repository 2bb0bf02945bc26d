import { EtcdClient } from '../../../../lib/stores/etcd/etcd.client.js';
import { etcdStore } from '../../../../lib/stores/etcd/etcd.store.js';
import { EtcdTable } from '../../../../lib/stores/etcd/etcd.table.js';
import { observedTable, recordStore } from '../../../../lib/stores/records/record.store.js';
import type { OpenedStore, Opening } from '../store.js';

export interface EtcdTarget {
  endpoints: string[];
  prefix: string;
}

export function open({ endpoints, prefix }: EtcdTarget, { requestTimeout, breakTable }: Opening): OpenedStore {
  const store = breakTable
    ? recordStore(breakTable(observedTable(new EtcdTable(new EtcdClient({ endpoints }, requestTimeout), prefix))))
    : etcdStore({ endpoints, prefix, requestTimeout });
  return { store };
}
