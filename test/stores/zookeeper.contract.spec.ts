import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';
import { wholeStoreContract } from '../contract/store.contracts.js';
import { shared } from '../support/shared-server.ask.js';

let connectionString: string;
beforeAll(async () => {
  ({ connectionString } = await shared('zookeeper'));
});

wholeStoreContract('zookeeper', () =>
  zookeeperStore({ connectionString: `${connectionString}/test-${process.pid}`, requestTimeout: 5000 }),
);
