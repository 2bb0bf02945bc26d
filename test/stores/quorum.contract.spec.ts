import '../support/virtual-time.js';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { engineContract, storeContract } from '../contract/contracts.js';
import type { MakeStore } from '../contract/open-locks.js';
import { rowsOf } from './memory/setting.js';

const members = [memoryStore(), memoryStore(), memoryStore()];
const makeStore: MakeStore = Object.assign(() => quorumStore(members, { quarantine: 0 }), {
  without: ['semaphore', 'countDownLatch', 'extend', 'inspector', 'bus', 'oneServer'] as const,
});
const remains = (): string[] => members.flatMap((store) => [...rowsOf(store)].filter(([, { record }]) => record).map(([key]) => key));

storeContract('a quorum of memory stores', makeStore);
engineContract('a quorum of memory stores', makeStore, remains, () => []);
