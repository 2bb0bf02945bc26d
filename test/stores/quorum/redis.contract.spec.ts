import { wholeStoreContract } from '../../contract/store.contracts.js';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { useQuorum } from './setting.js';

const setting = useQuorum(3);

wholeStoreContract(
  'a quorum of three Redis servers',
  () => quorumStore(setting.servers.map(setting.store), { quarantine: 0, memberTimeout: 1_000 }),
  { without: ['semaphore', 'countDownLatch', 'extend', 'adopt', 'inspector', 'bus', 'oneServer'] },
);
