import './virtual-time.js';
import { engineContract } from '../contract/engine.contracts.js';
import { wholeStoreContract } from '../contract/store.contracts.js';
import { PlainData, plainStore } from './plain-store.js';

const data = new PlainData();
const without = ['inspector', 'wakeUps', 'extend', 'adopt'] as const;

wholeStoreContract('a plain store', () => plainStore(data), { without });
engineContract(
  'a plain store',
  Object.assign(() => plainStore(data), { without }),
  () => data.remains(),
  () => [],
);
