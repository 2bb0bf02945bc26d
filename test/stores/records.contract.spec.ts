import { afterTurns } from '../support/virtual-time.js';
import { storeContract } from 'nestjs-distributed-lock/testing/store';
import { observedTable, recordStore } from '../../lib/stores/records/record.store.js';
import { CasMapData, CasMapTable } from '../support/cas-map-table.js';
import { MapData, MapTable } from '../support/map-table.js';

const [data, pollingData, casData] = [new MapData(), new MapData(), new CasMapData()];
afterTurns(60);
// Each store is a process of its own: none knows of the changes of another one but by the table.
storeContract('records', () => recordStore(new MapTable(data)));
storeContract('records without wake-ups', () => recordStore(new MapTable(pollingData, {}, 1000, false)), { without: ['wakeUps'] });
storeContract('records in observed time', () => recordStore(observedTable(new CasMapTable(casData))));
