import '../support/virtual-time.js';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { wholeStoreContract } from '../contract/store.contracts.js';

const members = [memoryStore(), memoryStore(), memoryStore()];

wholeStoreContract('a quorum of memory stores', () => quorumStore(members, { quarantine: 0 }), {
  without: ['semaphore', 'countDownLatch', 'extend', 'adopt', 'inspector', 'bus', 'oneServer'],
});
