import { afterTurns } from '../support/virtual-time.js';
import type { MakeStore } from '../contract/open-locks.js';
import { storeContract } from '../contract/store.contracts.js';
import { observedTable, recordStore } from '../../lib/stores/records/record.store.js';
import { CasMapData, CasMapTable } from '../support/cas-map-table.js';
import { MapData, MapTable } from '../support/map-table.js';

const [data, pollingData, casData] = [new MapData(), new MapData(), new CasMapData()];
afterTurns(60);
// Each store is a process of its own: none knows of the changes of another one but by the table.
const woken: MakeStore = () => recordStore(new MapTable(data));
const polling: MakeStore = Object.assign(() => recordStore(new MapTable(pollingData, {}, 1000, false)), { without: ['wakeUps'] as const });
const observed: MakeStore = () => recordStore(observedTable(new CasMapTable(casData)));

storeContract('records', woken);
storeContract('records without wake-ups', polling);
storeContract('records in observed time', observed);
