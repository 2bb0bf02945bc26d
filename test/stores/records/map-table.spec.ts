import { recordTableContract } from '../../contract/record-table.contract.js';
import { MapData, MapTable } from '../../support/map-table.js';

const data = new MapData();
recordTableContract('a map', () => new MapTable(data), { sweep: async (key) => data.rows.delete(key) });
