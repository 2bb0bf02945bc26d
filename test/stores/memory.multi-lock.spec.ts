import { MULTI_LOCK } from '../contract/kinds.js';
import { multiLockContract } from '../contract/multi-lock.contract.js';
import { mutexContractOf } from '../contract/mutex.contract.js';
import { memoryAndRemains } from './memory/setting.js';

const { store, remains } = memoryAndRemains();

multiLockContract('memory', () => store, remains);
mutexContractOf(MULTI_LOCK, 'memory', () => store, remains);
