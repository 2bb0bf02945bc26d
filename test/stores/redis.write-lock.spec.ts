import { WRITE_LOCK } from '../contract/kinds.js';
import { mutexContractOf } from '../contract/mutex.contract.js';
import { redisAndRemains } from './redis/remains.js';

const { makeStore, remains } = redisAndRemains();

mutexContractOf(WRITE_LOCK, 'redis', makeStore, remains);
