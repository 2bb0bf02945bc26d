import { SEMAPHORE_OF_ONE } from '../contract/kinds.js';
import { mutexContractOf } from '../contract/mutex.contract.js';
import { memoryAndRemains } from './memory/setting.js';

const { store, remains } = memoryAndRemains();

mutexContractOf(SEMAPHORE_OF_ONE, 'memory', () => store, remains);
