import { mutexContractOf } from '../contract/mutex.contract.js';
import { TERM } from '../contract/term-kind.js';
import { memoryAndRemains } from './memory/setting.js';

const { store, remains } = memoryAndRemains();

mutexContractOf(TERM, 'memory', () => store, remains);
