import { createHook } from 'node:async_hooks';
import { LockLostError, Locks, StoreError } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { LockEventEmitter } from '../../lib/core/model/events.js';
import { LockLog } from '../../lib/core/model/lock-log.js';
import { PastEvents } from '../../lib/core/model/past-events.js';
import { eventually } from '../support/eventually.js';

const common = { kind: 'mutex', label: 'Cart.checkout', waited: 1, attempts: 1 } as const;
const timeout = { ...common, holder: undefined, holderLabel: undefined, waitTimeout: 1 };
const forced = { key: 'import', owner: 'jobs@a:1:uuid', token: 1, by: 'anna', reason: 'it hangs' };

it('what matters stays through a storm, in less than 50 kB', () => {
  const events = new LockEventEmitter(new LockLog(false));
  const past = new PastEvents(events);
  events.emit('forced', forced);
  for (let i = 0; i < 700; i++) events.emit('timeout', { ...timeout, key: 'hot' });
  expect(past.eventsAfter(0)).toMatchObject([
    { number: 1, event: 'forced', key: 'import', by: 'anna', reason: 'it hangs', count: 1 },
    { number: 701, event: 'timeout', key: 'hot', label: 'Cart.checkout', count: 700 },
  ]);
  expect(past.eventsAfter(1)).toMatchObject([{ event: 'timeout' }]);
  for (let i = 0; i < 2_000; i++) {
    const key = `${i}`.padEnd(512, '-');
    const error = new StoreError('x'.repeat(10_000), { key, transient: true });
    events.emit('timeout', { ...timeout, key });
    events.emit('failed', { ...common, key, error });
    events.emit('timeout', { ...timeout, key: `${i}` });
  }
  expect(past.eventsAfter(0)).toContainEqual(expect.objectContaining({ event: 'forced', key: 'import' }));
  expect(past.eventsAfter(0)).toContainEqual(expect.objectContaining({ event: 'timeout', key: '1999' }));
  expect(past.eventsAfter(0).length).toBeLessThanOrEqual(200);
  expect(JSON.stringify(past.eventsAfter(0)).length).toBeLessThan(50_000);
});

it('a hundred keys that are taken away push nothing out, and are no losses', () => {
  const events = new LockEventEmitter(new LockLog(false));
  const past = new PastEvents(events);
  for (let i = 0; i < 50; i++) events.emit('timeout', { ...timeout, key: `${i}` });
  const loss = {
    ...common,
    owner: 'jobs@a:1:uuid',
    held: 1,
    limited: false,
    afterRelease: false,
    error: new LockLostError('lost', { key: 'key' }),
  };
  for (let i = 0; i < 100; i++) {
    events.emit('forced', { ...forced, key: `${i}` });
    events.emit('lost', { ...loss, key: `${i}`, reason: 'forced' });
  }
  events.emit('lost', { ...loss, key: 'key', reason: 'expired' });
  events.emit('skipped', { ...common, key: 'tick' });
  const numberOf = (event: string): number => past.eventsAfter(0).filter((each) => each.event === event).length;
  expect(['timeout', 'forced', 'lost', 'skipped'].map(numberOf)).toEqual([50, 100, 1, 1]);
});

it('a process that nobody watches makes no event for a call that gets its key, waits for it, is called off, or tries once', async () => {
  const locks = new Locks(memoryStore(), { logger: false });
  const emit = jest.spyOn(LockEventEmitter.prototype, 'emit');
  const contexts: string[] = [];
  const hook = createHook({ init: (_id, type) => void contexts.push(type) }).enable();
  const cancel = new AbortController();
  const first = await locks.acquire('key');
  expect(await locks.tryAcquire('key')).toBeNull();
  const waits = [1, 2].map(() => locks.acquire('key', { waitTimeout: 60_000 }));
  const calledOff = locks.acquire('key', { waitTimeout: 60_000, signal: cancel.signal }).catch((error: Error) => error.name);
  await eventually(async () => (await locks.inspect('key')).waiters[0]?.report?.length === 3);
  cancel.abort();
  expect(await calledOff).toBe('LockAbortedError');
  await first.release();
  for (const lease of waits) await (await lease).release();
  hook.disable();
  expect(emit).not.toHaveBeenCalled();
  expect(contexts).not.toContain('LockWait');
  expect(await locks.tryAcquire('key').then((lease) => lease?.release())).toBe(true);
  emit.mockRestore();
  await locks.close();
});
