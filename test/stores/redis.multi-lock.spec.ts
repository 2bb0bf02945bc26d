import { MULTI_LOCK } from '../contract/kinds.js';
import { multiLockContract } from '../contract/multi-lock.contract.js';
import { mutexContractOf } from '../contract/mutex.contract.js';
import { redisAndRemains } from './redis/remains.js';

const { makeStore, remains } = redisAndRemains();

multiLockContract('redis', makeStore, remains);
mutexContractOf(MULTI_LOCK, 'redis', makeStore, remains);
