// Servers of which not all are of one ensemble.
import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';
import { startZookeeper } from '../../support/zookeeper-server.js';
import { twoClusters } from '../two-clusters.js';

// They answer no word that would tell what they are.
twoClusters({
  name: 'zookeeper',
  start: () => startZookeeper({ config: ['4lw.commands.whitelist=ruok'], word: 'ruok' }),
  options: (members) => ({ connectionString: members.map(({ connectionString }) => connectionString).join() }),
  store: (options) => zookeeperStore(options as never),
});
