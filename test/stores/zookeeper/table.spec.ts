import { casTableContract } from 'nestjs-distributed-lock/testing/store';
import type { Client } from 'node-zookeeper-client';
import { ZookeeperSession } from '../../../lib/stores/zookeeper/zookeeper.session.js';
import { ZookeeperTable } from '../../../lib/stores/zookeeper/zookeeper.table.js';
import { shared } from '../../support/shared-server.ask.js';
import { asked, connected } from './setting.js';

let hosts: string;
beforeAll(async () => {
  ({ connectionString: hosts } = await shared('zookeeper'));
});

const root = `/test-${process.pid}-table/locks`;
casTableContract(
  'zookeeper',
  () => new ZookeeperTable(new ZookeeperSession({ client: undefined, hosts, root, auth: [], acl: undefined }, 5000)),
  {
    sweep: async (key) => {
      const client = (await connected(hosts)) as unknown as { removeRecursive: Client['remove'] };
      await asked((done) => client.removeRecursive(`${root}/r/${encodeURIComponent(key)}`, -1, done));
    },
  },
);
