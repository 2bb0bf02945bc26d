import { readWriteLockContract } from '../contract/read-write-lock.contract.js';
import { semaphoreContract } from '../contract/semaphore.contract.js';
import { memoryAndRemains } from './memory/setting.js';

const { store, remains } = memoryAndRemains();

readWriteLockContract('memory', () => store, remains);
semaphoreContract('memory', () => store, remains);
