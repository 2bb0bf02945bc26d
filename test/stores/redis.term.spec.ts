import { mutexContractOf } from '../contract/mutex.contract.js';
import { TERM } from '../contract/term-kind.js';
import { redisAndRemains } from './redis/remains.js';

const { makeStore, remains } = redisAndRemains();

mutexContractOf(TERM, 'redis', makeStore, remains);
