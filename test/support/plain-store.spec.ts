import './virtual-time.js';
import { engineContract } from '../contract/engine.contracts.js';
import { storeContract } from '../contract/store.contracts.js';
import { PlainData, plainStore } from './plain-store.js';

const data = new PlainData();
const makeStore = Object.assign(() => plainStore(data), { without: ['inspector', 'wakeUps', 'extend'] as const });

storeContract('a plain store', makeStore);
engineContract(
  'a plain store',
  makeStore,
  () => data.remains(),
  () => [],
);
