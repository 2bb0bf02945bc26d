import { etcdStore } from 'nestjs-distributed-lock/etcd';
import { wholeStoreContract } from '../contract/store.contracts.js';
import { shared } from '../support/shared-server.ask.js';

let url: string;
beforeAll(async () => {
  ({ url } = await shared('etcd'));
});

wholeStoreContract('etcd', () => etcdStore({ endpoints: [url], prefix: `test-${process.pid}/`, requestTimeout: 5000 }));
