import { afterTurns } from '../support/virtual-time.js';
import type { MakeStore } from '../contract/open-locks.js';
import { storeContract } from '../contract/store.contracts.js';
import { recordStore } from '../../lib/stores/records/record.store.js';
import { MapData, MapTable } from '../support/map-table.js';

const [data, pollingData] = [new MapData(), new MapData()];
afterTurns(60);
// Each store is a process of its own: none knows of the changes of another one but by the table.
const woken: MakeStore = () => recordStore(new MapTable(data));
const polling: MakeStore = Object.assign(() => recordStore(new MapTable(pollingData, {}, 1000, false)), { without: ['wakeUps'] as const });

storeContract('records', woken);
storeContract('records without wake-ups', polling);
