import { EtcdClient } from '../../../../lib/stores/etcd/etcd.client.js';
import { etcdStore } from '../../../../lib/stores/etcd/etcd.store.js';
import { EtcdTable } from '../../../../lib/stores/etcd/etcd.table.js';
import { observedTable, recordStore, type RecordTable } from '../../../../lib/stores/records/record.store.js';
import type { Random } from '../../random.js';
import type { OpenedStore } from '../store.js';

export interface EtcdTarget {
  endpoints: string[];
  prefix: string;
}

export function open(target: unknown, random: Random, breakTable?: (table: RecordTable) => RecordTable): OpenedStore {
  const { endpoints, prefix } = target as EtcdTarget;
  const requestTimeout = random.pick([300, 600, 1_000]);
  const store = breakTable
    ? recordStore(breakTable(observedTable(new EtcdTable(new EtcdClient({ endpoints }, requestTimeout), prefix))))
    : etcdStore({ endpoints, prefix, requestTimeout });
  return { store };
}
