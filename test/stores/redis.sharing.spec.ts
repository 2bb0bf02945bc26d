import { readWriteLockContract } from '../contract/read-write-lock.contract.js';
import { semaphoreContract } from '../contract/semaphore.contract.js';
import { redisAndRemains } from './redis/remains.js';

const { makeStore, remains } = redisAndRemains();

readWriteLockContract('redis', makeStore, remains);
semaphoreContract('redis', makeStore, remains);
