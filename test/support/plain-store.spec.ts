import './virtual-time.js';
import { engineContract } from '../contract/engine.contracts.js';
import { storeContract } from 'nestjs-distributed-lock/testing/store';
import { PlainData, plainStore } from './plain-store.js';

const data = new PlainData();
const without = ['inspector', 'wakeUps', 'extend'] as const;

storeContract('a plain store', () => plainStore(data), { without });
engineContract(
  'a plain store',
  Object.assign(() => plainStore(data), { without }),
  () => data.remains(),
  () => [],
);
