import { etcdStore } from 'nestjs-distributed-lock/etcd';
import { storeContract } from 'nestjs-distributed-lock/testing/store';
import { shared } from '../support/shared-server.ask.js';

let url: string;
beforeAll(async () => {
  ({ url } = await shared('etcd'));
});

storeContract('etcd', () => etcdStore({ endpoints: [url], prefix: `test-${process.pid}/`, requestTimeout: 5000 }));
