import { afterTurns } from '../support/virtual-time.js';
import { wholeStoreContract } from '../contract/store.contracts.js';
import { observedTable, recordStore } from '../../lib/stores/records/record.store.js';
import { CasMapData, CasMapTable } from '../support/cas-map-table.js';
import { MapData, MapTable } from '../support/map-table.js';

const [data, pollingData, casData] = [new MapData(), new MapData(), new CasMapData()];
afterTurns(60);
// Each store is a process of its own: none knows of the changes of another one but by the table.
wholeStoreContract('records', () => recordStore(new MapTable(data)));
wholeStoreContract('records without wake-ups', () => recordStore(new MapTable(pollingData, {}, 1000, false)), { without: ['wakeUps'] });
wholeStoreContract('records in observed time', () => recordStore(observedTable(new CasMapTable(casData))));
