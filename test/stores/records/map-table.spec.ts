import { casTableContract, recordTableContract } from 'nestjs-distributed-lock/testing/store';
import { forkChild } from '../../support/child.js';
import { CasMapData, CasMapTable } from '../../support/cas-map-table.js';
import { MapData, MapTable } from '../../support/map-table.js';

const [data, casData] = [new MapData(), new CasMapData()];
recordTableContract('a map', () => new MapTable(data), { sweep: async (key) => data.rows.delete(key) });

casTableContract('a map', () => new CasMapTable(casData), { sweep: async (key) => casData.rows.delete(key) });

it('a program that does nothing but wait for its key is not over while others are faster', async () => {
  const child = await forkChild<{ type: 'granted' }>('test/stores/records/alone.child.ts');
  await child.waitFor('granted');
  expect(await child.exit).toEqual({ code: 0, signal: null });
});
