// Processes that observe the time, over one store and one virtual clock.
import { afterTurns, mayTake } from '../../../support/virtual-time.js';
import type { AcquireReply } from '../../../../lib/core/store/lease-driver.js';
import type { LockStore } from '../../../../lib/core/store/lock-store.js';
import { observedTable } from '../../../../lib/stores/records/observed/observed.table.js';
import { recordStore } from '../../../../lib/stores/records/record.store.js';
import { CasMapData, CasMapTable, type CasMapTableOptions } from '../../../support/cas-map-table.js';

afterTurns(60);
mayTake(20_000);

export const TTL = 1000;
export const HOUR = 3_600_000;
export const GRANTED = { granted: true };
export const TAKEN = { granted: false };

export let data: CasMapData;
/** The table of the last process. */
export let table: CasMapTable;
let opened: LockStore[];
let stores = 0;
beforeEach(() => {
  data = new CasMapData();
  opened = [];
});
afterEach(() => Promise.all(opened.map((store) => store.close())));

/** Another process. Without a count, unless it is asked for, so that it knows only what it has looked at. */
export function newProcess(options: CasMapTableOptions = {}): LockStore {
  table = new CasMapTable(data, { storeId: `rules ${++stores}`, isCounted: false, isWoken: false, ...options });
  opened.push(recordStore(observedTable(table)));
  return opened.at(-1)!;
}
export const counted = (options: CasMapTableOptions = {}): LockStore => newProcess({ isCounted: true, ...options });

export const acquire = (store: LockStore, owner: string, { key = 'key', ttl = TTL, queue = false } = {}): Promise<AcquireReply> =>
  store.mutex.acquire({ key, owner, ttl, tokens: 1, queue });
export const renew = (store: LockStore, owner: string, ttl = TTL) => store.mutex.renew([{ key: 'key', owner, ttl }])[0]!;
export const release = (store: LockStore, owner: string, keepFor = 0) => store.mutex.release({ key: 'key', owner, keepFor });
export const leave = (store: LockStore, owner: string) => store.mutex.leave({ key: 'key', owner });
export const remaining = async (store: LockStore, key = 'key'): Promise<number> =>
  (await store.mutex.check({ key, owner: 'nobody' })).remaining;
