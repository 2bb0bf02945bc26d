import '../support/virtual-time.js';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { storeContract } from 'nestjs-distributed-lock/testing/store';

const members = [memoryStore(), memoryStore(), memoryStore()];

storeContract('a quorum of memory stores', () => quorumStore(members, { quarantine: 0 }), {
  without: ['semaphore', 'countDownLatch', 'extend', 'bus', 'oneServer'],
});
