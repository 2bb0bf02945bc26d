import { afterTurns } from '../support/virtual-time.js';
import { engineContract, storeContract } from '../contract/contracts.js';
import type { MakeStore } from '../contract/open-locks.js';
import { recordStore } from '../../lib/stores/records/record.store.js';
import type { KeyRecord } from '../../lib/stores/records/record.work.js';
import { MapData, MapTable } from '../support/map-table.js';

const [data, pollingData] = [new MapData(), new MapData()];
afterTurns(60);
// Each store is a process of its own: none knows of the changes of another one but by the table.
const woken: MakeStore = () => recordStore(new MapTable(data));
const polling: MakeStore = Object.assign(() => recordStore(new MapTable(pollingData, {}, 1000, false)), { without: ['wakeUps'] as const });

storeContract('records', woken);
engineContract('records', woken, remains, (key) => waitersOf(recordOf(key)));
storeContract('records without wake-ups', polling);

function recordOf(key: string): KeyRecord | undefined {
  const row = data.rows.get(key);
  return row?.record == null || row.endsAt <= performance.now() + data.offset ? undefined : (JSON.parse(row.record) as KeyRecord);
}

function waitersOf(record?: KeyRecord): string[] {
  return record?.kind === 'count-down latch' ? Object.keys(record.waiters) : [];
}

function remains(): string[] {
  return [...data.rows.keys()].filter((key) => recordOf(key));
}
