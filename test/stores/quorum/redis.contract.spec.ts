import { storeContract } from '../../contract/store.contracts.js';
import type { MakeStore } from '../../contract/open-locks.js';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { useQuorum } from './setting.js';

const setting = useQuorum(3);
const makeStore = () => quorumStore(setting.servers.map(setting.store), { quarantine: 0, memberTimeout: 1_000 });
const without: MakeStore['without'] = ['semaphore', 'countDownLatch', 'extend', 'bus', 'oneServer'];

storeContract('a quorum of three Redis servers', Object.assign(makeStore, { without }));
