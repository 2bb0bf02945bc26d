// A program with nothing to do but to take a key for which others are faster a few times.
import { Locks } from '../../../lib/core.js';
import { recordStore } from '../../../lib/stores/records/record.store.js';
import { tellParent } from '../../support/child.js';
import { MapData, MapTable } from '../../support/map-table.js';

const data = new MapData();
let times = 8;
const table = new MapTable(data, {
  before({ key, expected }) {
    if (expected !== undefined && times-- > 0)
      data.rows.set(key, { version: String(times), record: null, endsAt: Date.now() + 60_000, fence: 0 });
  },
});
const locks = new Locks(recordStore(table), { logger: false });
const lease = await locks.acquire('key');
tellParent({ type: 'granted' });
await lease.release();
await locks.close();
