import { recordTableContract } from '../../contract/record-table.contract.js';
import { forkChild } from '../../support/child.js';
import { MapData, MapTable } from '../../support/map-table.js';

const data = new MapData();
recordTableContract('a map', () => new MapTable(data), { sweep: async (key) => data.rows.delete(key) });

it('a program that does nothing but wait for its key is not over while others are faster', async () => {
  const child = await forkChild<{ type: 'granted' }>('test/stores/records/alone.child.ts');
  await child.waitFor('granted');
  expect(await child.exit).toEqual({ code: 0, signal: null });
});
