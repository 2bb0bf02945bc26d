import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';
import { storeContract } from 'nestjs-distributed-lock/testing/store';
import { shared } from '../support/shared-server.ask.js';

let connectionString: string;
beforeAll(async () => {
  ({ connectionString } = await shared('zookeeper'));
});

storeContract('zookeeper', () => zookeeperStore({ connectionString: `${connectionString}/test-${process.pid}`, requestTimeout: 5000 }));
