import { SEMAPHORE_OF_ONE } from '../contract/kinds.js';
import { mutexContractOf } from '../contract/mutex.contract.js';
import { redisAndRemains } from './redis/remains.js';

const { makeStore, remains } = redisAndRemains();

mutexContractOf(SEMAPHORE_OF_ONE, 'redis', makeStore, remains);
