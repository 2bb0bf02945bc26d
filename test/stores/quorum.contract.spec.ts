import '../support/virtual-time.js';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import type { MakeStore } from '../contract/open-locks.js';
import { storeContract } from '../contract/store.contracts.js';

const members = [memoryStore(), memoryStore(), memoryStore()];
const makeStore: MakeStore = Object.assign(() => quorumStore(members, { quarantine: 0 }), {
  without: ['semaphore', 'countDownLatch', 'extend', 'bus', 'oneServer'] as const,
});

storeContract('a quorum of memory stores', makeStore);
