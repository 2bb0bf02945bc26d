import { SEMAPHORE_OF_ONE, WRITE_LOCK } from '../contract/kinds.js';
import { multiLockContract } from '../contract/multi-lock.contract.js';
import { mutexContractOf } from '../contract/mutex.contract.js';
import { readWriteLockContract } from '../contract/read-write-lock.contract.js';
import { semaphoreContract } from '../contract/semaphore.contract.js';
import { PlainData, plainStore } from './plain-store.js';

const data = new PlainData();
const makeStore = Object.assign(() => plainStore(data), { without: ['wakeUps', 'extend'] as const });
const remains = () => data.remains();

multiLockContract('a plain store', makeStore, remains);
readWriteLockContract('a plain store', makeStore, remains);
semaphoreContract('a plain store', makeStore, remains);
mutexContractOf(SEMAPHORE_OF_ONE, 'a plain store', makeStore, remains);
mutexContractOf(WRITE_LOCK, 'a plain store', makeStore, remains);
