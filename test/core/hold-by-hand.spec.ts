import '../support/virtual-time.js';
import { Locks, StoreError } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { holdByHand } from '../../lib/operate/hold-by-hand.js';
import { SeenTwice } from '../../lib/operate/wait-graph.js';

const WHILE = 5_000;

it('a key that is held by hand is taken until its time is over, by the words of the operator', async () => {
  const locks = new Locks(memoryStore(), { logger: false });
  const owner = await holdByHand(locks.store, 'k', WHILE, 'anna: no deploy');
  expect(owner).toMatch(/^anna:-no-deploy@/);
  expect((await locks.inspect('k')).holders).toMatchObject([{ owner, phase: 'kept' }]);
  expect(await holdByHand(locks.store, 'k', WHILE, 'ben')).toBeNull();
  await (await locks.acquire('k', { waitTimeout: WHILE + 1_000 })).release();
  await locks.close();
});

it('a key that is held by hand can be freed, whatever the words are', async () => {
  const locks = new Locks(memoryStore(), { logger: false });
  const owner = (await holdByHand(locks.store, 'k', WHILE, 'kept: until the audit'))!;
  expect((await locks.forceRelease('k', { owner, reason: 'over', grace: 0 })).outcome).toBe('forced');
  await locks.close();
});

it.each(['acquire', 'release'] as const)('a hold by hand whose %s fails leaves nothing', async (verb) => {
  const store = memoryStore();
  let failures = 1;
  const driver = Object.create(store.mutex) as typeof store.mutex;
  driver[verb] = async (request: never) => {
    // The reply of an acquire is lost, and a release is never made.
    if (verb === 'acquire' || failures <= 0) await store.mutex[verb](request);
    if (failures-- > 0) throw new StoreError('no answer', { transient: true });
    return undefined as never;
  };
  await expect(holdByHand({ ...store, mutex: driver }, 'k', WHILE, 'anna')).rejects.toThrow('no answer');
  expect(await new Locks(store, { logger: false }).inspect('k')).toMatchObject({ holders: [] });
});

it('a deadlock counts if two looks have found it, one after the other', () => {
  const deadlock = (...keys: string[]) => ({
    keys,
    members: [{ app: 'a', host: 'h', pid: 1, holds: keys, waitsFor: 'x' }],
    endsIn: null,
    advice: '',
  });
  const seen = new SeenTwice();
  expect(seen.of([deadlock('a', 'b')])).toEqual([]);
  expect(seen.of([deadlock('b', 'a'), deadlock('c')])).toEqual([deadlock('b', 'a')]);
  expect(seen.of([])).toEqual([]);
  expect(seen.of([deadlock('a', 'b')])).toEqual([]);
});
