import { countDownLatchContract } from '../contract/count-down-latch.contract.js';
import { leaderElectionContract } from '../contract/leader-election.contract.js';
import { mutexContract } from '../contract/mutex.contract.js';
import { PlainData, plainStore } from './plain-store.js';

const data = new PlainData();
const makeStore = Object.assign(() => plainStore(data), { without: ['wakeUps', 'extend'] as const });
const remains = () => data.remains();

mutexContract('a plain store', makeStore, remains);
leaderElectionContract('a plain store', makeStore, remains);
countDownLatchContract('a plain store', makeStore, () => []);
