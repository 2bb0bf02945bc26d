import type { KeyEvent, KeyReport } from 'nestjs-distributed-lock/core';
import type { Messages } from '../../lib/dashboard/dashboard.protocol.js';
import { LiveTable } from '../../lib/dashboard/live-table.js';

const SHOP = { app: 'shop', host: 'a', pid: 1 };
const OWNER = 'shop@a:1:u1';
const at = new Date(1_000_000);
let table: LiveTable;
beforeEach(() => (table = new LiveTable()));

const deltaOf = (ids: Iterable<string>) => JSON.parse(table.deltaOf(ids)) as Pick<Messages['delta'], 'put' | 'drop'>;
const takeChanges = () => {
  const { put, drop } = deltaOf(table.takeChanges());
  return { put, drop };
};
const rows = () => deltaOf(table.keys.keys()).put;

function happens(event: KeyEvent['event'], more: Partial<KeyEvent> = {}): void {
  table.apply('default', { ...SHOP, event, key: 'order:42', at, kind: 'mutex', label: 'Orders.pay', ...more });
}
const acquired = (owner: string, fencingToken: number, more?: Partial<KeyEvent>) => happens('acquired', { owner, fencingToken, ...more });

function report(more: Partial<KeyReport>): KeyReport {
  const none = { holders: [], holderCount: 0, waiters: [], waiterCount: 0 };
  return { key: 'order:42', kind: 'mutex', at, fencingToken: 1, remaining: null, ...none, ...more };
}
const holder = (owner: string) => ({ owner, ...SHOP, phase: 'held' as const, remaining: 1000, since: at, permits: Infinity });
const heard = (label: string, waiting: number) => ({ label, since: at, fencingToken: null, waiting, oldestWait: 0, holding: [] });

it('a key has a row while it is held or waited for', () => {
  acquired(OWNER, 1);
  expect(takeChanges()).toMatchObject({ put: [{ key: 'order:42', kind: 'mutex', holder: { owner: OWNER, label: 'Orders.pay' } }] });
  expect(takeChanges()).toEqual({ put: [], drop: [] });
  happens('waiting', { label: 'Orders.cancel' });
  happens('released', { owner: OWNER, fencingToken: 1 });
  expect(takeChanges()).toMatchObject({ put: [{ holder: null, waiters: 1, waitingSince: 1_000_000, waitingIn: ['shop@a:1'] }], drop: [] });
  happens('timeout', { label: 'Orders.cancel' });
  expect(takeChanges()).toEqual({ put: [], drop: [{ store: 'default', key: 'order:42' }] });
  expect(table.keys.size).toBe(0);
});

it('a caller that gets the key waits no more, and a release of the one before does not take it away', () => {
  acquired(OWNER, 1);
  happens('waiting', { label: 'Orders.cancel' });
  acquired(OWNER, 2, { label: 'Orders.cancel' });
  happens('released', { owner: OWNER, fencingToken: 1 });
  expect(rows()).toMatchObject([{ holder: { label: 'Orders.cancel', token: 2 }, waiters: 0 }]);
});

it('a mutex has one holder, and a semaphore several', () => {
  for (const [index, owner] of ['u1', 'u2', 'u3'].entries()) {
    acquired(owner, index);
    acquired(owner, index, { key: 'pool', kind: 'semaphore' });
  }
  expect(rows()).toMatchObject([
    { key: 'order:42', holders: 1, holder: { owner: 'u3' } },
    { key: 'pool', kind: 'semaphore', holders: 3 },
  ]);
});

it('a report replaces what events have said', () => {
  acquired('u1', 1);
  happens('waiting');
  const waiter = { owner: 'shop@a:1:u3', ...SHOP, since: at, permits: 1, holding: [], isHeard: true };
  const told = [heard('a', 4), heard('b', 4)];
  const waiters = [{ ...waiter, told }, waiter];
  table.replace('default', report({ holders: [holder('u2')], holderCount: 1, waiters, waiterCount: 3 }), Infinity);
  // Four callers of the first process, one of the second, and one that the report does not name.
  expect(rows()).toMatchObject([{ holder: { owner: 'u2', isSilent: true }, waiters: 6 }]);
  table.replace('default', report({ kind: 'free' }), Infinity);
  expect(takeChanges()).toEqual({ put: [], drop: [{ store: 'default', key: 'order:42' }] });
});

it('keys that a store does not list any more are dropped, and those of other stores stay', () => {
  for (const store of ['default', 'other']) table.replace(store, report({ holders: [holder('u1')], holderCount: 1 }), Infinity);
  table.keepOnly('default', new Set(), Infinity);
  expect(takeChanges()).toMatchObject({ put: [{ store: 'other' }], drop: [{ store: 'default' }] });
});

it('contended keys are asked for one after the other, and processes are counted', () => {
  for (const key of ['a', 'b', 'c']) {
    acquired(OWNER, 1, { key });
    if (key !== 'c') happens('waiting', { key, host: 'b' });
  }
  const [first] = table.contended('default');
  first!.askedAt = 1;
  expect(table.contended('default').map(({ key }) => key)).toEqual(['b', 'a']);
  expect(table.census().processes).toEqual([
    { name: 'shop@a:1', isSilent: false, holds: 3, waits: 0 },
    { name: 'shop@b:1', isSilent: false, holds: 0, waits: 2 },
  ]);
});

it('events are newer than a listing that has begun before them', () => {
  const begunAt = performance.now();
  acquired(OWNER, 5);
  table.replace('default', report({ kind: 'free' }), begunAt - 1);
  table.keepOnly('default', new Set(), begunAt - 1);
  expect(rows()).toMatchObject([{ key: 'order:42', holder: { owner: OWNER, token: 5 } }]);
});

it('a release counts, though the process of the holder did not say which token it has', () => {
  table.replace('default', report({ holders: [holder(OWNER)], holderCount: 1 }), Infinity);
  happens('released', { owner: OWNER, fencingToken: 5 });
  expect(rows()).toEqual([]);
});

it('a latch that is not listed any more is dropped', () => {
  table.replace('default', report({ kind: 'count-down latch', count: 2 }), Infinity);
  expect(takeChanges()).toMatchObject({ put: [{ kind: 'count-down latch' }] });
  table.keepOnly('default', new Set(), Infinity);
  expect(takeChanges()).toMatchObject({ put: [], drop: [{ key: 'order:42' }] });
});

it('any number of callers may wait, and a process of another version may name a kind that is not known', () => {
  for (let count = 1; count <= 200_000; count++) happens('waiting', { at: new Date(count) });
  acquired(OWNER, 1, { kind: 'constructor' as never });
  expect(takeChanges().put).toMatchObject([{ kind: 'free', waiters: 199_999, waitingSince: 2 }]);
});

it('a holder whose process falls silent keeps its label and its token, and the time when it said so', () => {
  acquired(OWNER, 5, { label: 'Orders.pay' });
  table.replace('default', report({ holders: [holder(OWNER)], holderCount: 1 }), Infinity);
  const silent = { isSilent: true, label: 'Orders.pay', token: 5, saidAt: 1_000_000 };
  expect(rows()).toMatchObject([{ holder: silent }]);
  // Another owner has nothing of it.
  table.replace('default', report({ holders: [holder('u2')], holderCount: 1 }), Infinity);
  expect(rows()).toMatchObject([{ holder: { isSilent: true, label: null, token: null, saidAt: null } }]);
});

it('a key that a listing finds as it was is not sent again', () => {
  const held = report({ holders: [holder(OWNER)], holderCount: 1 });
  table.replace('default', held, Infinity);
  expect(takeChanges().put).toHaveLength(1);
  table.replace('default', held, Infinity);
  expect(takeChanges()).toEqual({ put: [], drop: [] });
  table.replace('default', report({ holders: [holder('u2')], holderCount: 1 }), Infinity);
  expect(takeChanges().put).toMatchObject([{ holder: { owner: 'u2' } }]);
});
