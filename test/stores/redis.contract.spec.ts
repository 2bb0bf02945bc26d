import { leaderElectionContract } from '../contract/leader-election.contract.js';
import { mutexContract } from '../contract/mutex.contract.js';
import { redisAndRemains } from './redis/remains.js';

const { makeStore, remains } = redisAndRemains();

mutexContract('redis', makeStore, remains);
leaderElectionContract('redis', makeStore, remains);
