import { AsyncLocalStorage } from 'node:async_hooks';
import { currentLease, LockTimeoutError } from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { Gate } from './gate.js';
import { bootRows, KEY, LONG, read } from './rows.js';

describe('a reader of a locked async iterable', () => {
  it('runs its own code inside the call chain, and its reader’s outside', async () => {
    const inside: unknown[] = [];
    const outside: unknown[] = [];
    const { rows } = await bootRows(async function* () {
      for (let item = 0; item < 3; item++) {
        await Promise.resolve();
        inside.push(currentLease()?.key);
        yield item;
        inside.push(currentLease()?.key);
      }
    });
    for await (const item of rows()) outside.push(item, currentLease()?.key);
    outside.push(currentLease());
    expect(inside).toEqual(Array(6).fill(KEY));
    expect(outside).toEqual([0, undefined, 1, undefined, 2, undefined, undefined]);
  });

  it('leaves its reader in the call chain, and in the async context, that it reads in', async () => {
    const storage = new AsyncLocalStorage<string>();
    const { rows, locks } = await bootRows();
    const seen: unknown[] = [];
    await storage.run('reader', () =>
      locks.using('outer', async () => {
        for await (const _ of rows()) seen.push(currentLease()?.key, storage.getStore());
      }),
    );
    expect(seen).toEqual(['outer', 'reader', 'outer', 'reader', 'outer', 'reader']);
  });

  it('is a stranger to its reader, who cannot enter it again', async () => {
    const { rows } = await bootRows(undefined, { waitTimeout: 0 });
    for await (const _ of rows()) {
      await expect(read(rows())).rejects.toBeInstanceOf(LockTimeoutError);
      break;
    }
  });

  it('may ask for several items at once, and gets them in order', async () => {
    const { rows, taken, table } = await bootRows();
    const iterator = rows();
    const steps = await Promise.all([iterator.next(), iterator.next(), iterator.next(), iterator.next(), iterator.next()]);
    expect(steps.map(({ value }) => value)).toEqual([1, 2, 3, 'end', undefined]);
    expect([table.calls, await taken()]).toEqual([1, false]);
  });

  it.each([{ fair: false }, { fair: true }])('may leave at once while it waits, and leaves no lock behind: %p', async (options) => {
    const { rows, table, locks } = await bootRows(undefined, { retryCount: 0, retryInterval: 2, ...options });
    const lease = await locks.acquire(KEY, { keyTimeout: LONG });
    const iterator = rows();
    const step = iterator.next();
    await expect(locks.acquire(KEY, { waitTimeout: 50 })).rejects.toBeInstanceOf(LockTimeoutError);
    expect(await iterator.return('enough')).toEqual({ done: true, value: 'enough' });
    expect(await step).toEqual({ done: true, value: undefined });
    await lease.release();
    const next = await locks.acquire(KEY, { waitTimeout: 0, keyTimeout: LONG });
    await expect(locks.acquire(KEY, { waitTimeout: 50 })).rejects.toBeInstanceOf(LockTimeoutError);
    expect(await next.release()).toBe(true);
    expect([table.calls, await iterator.next()]).toEqual([0, { done: true, value: undefined }]);
  });

  it('may leave while the lock is being granted, and leaves none behind', async () => {
    const { rows, table, taken } = await bootRows();
    const iterator = rows();
    const step = iterator.next();
    await iterator.return(undefined);
    expect(await step).toEqual({ done: true, value: undefined });
    await eventually(async () => !(await taken()));
    expect(table.calls).toBe(0);
  });

  it('may throw into it before it has begun: nothing is locked', async () => {
    const { rows, table, acquired } = await bootRows();
    const iterator = rows();
    await expect(iterator.throw('never mind')).rejects.toBe('never mind');
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect([table.calls, acquired]).toEqual([0, []]);
  });

  it('has the lock until the method has cleaned up, also where that yields', async () => {
    const gate = new Gate();
    const { rows, taken } = await bootRows(async function* () {
      try {
        yield 1;
      } finally {
        yield 'one more';
        await gate.pass();
      }
    });
    const iterator = rows();
    await iterator.next();
    expect(await iterator.return('enough')).toEqual({ done: false, value: 'one more' });
    expect(await taken()).toBe(true);
    const last = iterator.next();
    await eventually(() => gate.arrived === 1);
    expect(await taken()).toBe(true);
    gate.open();
    expect(await last).toEqual({ done: true, value: 'enough' });
    expect(await taken()).toBe(false);
  });

  it('gives the lock back where the iterable is disposed of', async () => {
    const { rows, taken } = await bootRows();
    {
      await using iterator = rows();
      await iterator.next();
      expect(await taken()).toBe(true);
    }
    expect(await taken()).toBe(false);
  });
});
