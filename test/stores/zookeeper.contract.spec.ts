import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';
import { storeContract } from '../contract/store.contracts.js';
import { shared } from '../support/shared-server.ask.js';

let connectionString: string;
beforeAll(async () => {
  ({ connectionString } = await shared('zookeeper'));
});

storeContract('zookeeper', () => zookeeperStore({ connectionString: `${connectionString}/test-${process.pid}` }));
