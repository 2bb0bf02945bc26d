import { WRITE_LOCK } from '../contract/kinds.js';
import { mutexContractOf } from '../contract/mutex.contract.js';
import { memoryAndRemains } from './memory/setting.js';

const { store, remains } = memoryAndRemains();

mutexContractOf(WRITE_LOCK, 'memory', () => store, remains);
