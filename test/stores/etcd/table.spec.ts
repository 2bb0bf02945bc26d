import { casTableContract } from 'nestjs-distributed-lock/testing/store';
import { EtcdClient } from '../../../lib/stores/etcd/etcd.client.js';
import { EtcdTable } from '../../../lib/stores/etcd/etcd.table.js';
import { shared } from '../../support/shared-server.ask.js';
import { ask, base64 } from './setting.js';

let url: string;
beforeAll(async () => {
  ({ url } = await shared('etcd'));
});

const prefix = `test-${process.pid}/table/`;
casTableContract('etcd', () => new EtcdTable(new EtcdClient({ endpoints: [url] }, 5000), prefix), {
  sweep: (key) => ask(url, '/v3/kv/deleterange', { key: base64(`${prefix}r/${key}`) }),
});
