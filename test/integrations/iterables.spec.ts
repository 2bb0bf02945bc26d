import '../support/virtual-time.js';
import { AsyncLocalStorage } from 'node:async_hooks';
import { of } from 'rxjs';
import { currentLease, DistributedLock, LockConfigError, LockTimeoutError, type DistributedLockOptions } from 'nestjs-distributed-lock';
import { boot } from '../nest/boot.js';
import { Gate } from '../support/gate.js';
import { eventually } from '../support/eventually.js';
import { way } from './ways.js';

const KEY = 'rows-locks';

/** An app with one async generator, which does what the test says, locked by these options under {@link KEY}. */
async function bootRows(source: () => unknown = () => [1, 2, 3], options: DistributedLockOptions = {}) {
  class Table {
    calls = 0;
    log: unknown[] = [];

    @DistributedLock({ value: 'rows', keyTimeout: 60_000, ...options })
    async *rows(): AsyncGenerator<unknown, unknown, unknown> {
      this.calls++;
      try {
        const last: unknown = yield* source() as AsyncIterable<unknown>;
        return last ?? 'end';
      } finally {
        this.log.push(currentLease()?.key);
      }
    }
  }
  const booted = await boot({ providers: [Table] });
  const table = booted.get(Table);
  const occupy = () => booted.locks.acquire(KEY, { keyTimeout: 60_000, waitTimeout: 0 });
  return { ...booted, table, rows: () => table.rows(), taken: () => booted.isTaken(KEY), occupy };
}

/** Reads all of it into `items`; rejects as its reader would. */
async function read(rows: AsyncIterable<unknown>, items: unknown[] = []): Promise<unknown[]> {
  for await (const item of rows) items.push(item);
  return items;
}

way('Streams', 'an async generator', () => {
  it('is neither called nor locked until the first item is asked for', async () => {
    const { table, rows, acquired, taken } = await bootRows();
    const unread = rows();
    await unread.return(undefined);
    expect(await read(unread)).toEqual([]);
    await expect(rows().throw('never mind')).rejects.toBe('never mind');
    const iterator = rows();
    expect([table.calls, acquired]).toEqual([0, []]);
    expect(await iterator.next()).toEqual({ done: false, value: 1 });
    expect([table.calls, acquired, await taken()]).toEqual([1, [KEY], true]);
    await iterator.return(undefined);
  });

  it('is locked until it ends, and hands out what the method returned', async () => {
    const { rows, taken } = await bootRows();
    const iterator = rows();
    for (const value of [1, 2, 3]) {
      expect(await iterator.next()).toEqual({ done: false, value });
      expect(await taken()).toBe(true);
    }
    expect(await iterator.next()).toEqual({ done: true, value: 'end' });
    expect(await taken()).toBe(false);
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
  });

  it('is locked until its reader breaks off or throws, and the method may clean up under the lock', async () => {
    const { table, rows, taken } = await bootRows();
    for await (const item of rows()) if (item === 2) break;
    expect([table.log, await taken()]).toEqual([[KEY], false]);
    const error = new Error('cannot read');
    const reading = (async () => {
      for await (const item of rows()) if (item === 2) throw error;
    })();
    expect(await reading.catch((reason: unknown) => reason)).toBe(error);
    expect([table.log, await taken()]).toEqual([[KEY, KEY], false]);
  });

  it('passes values and errors on to the method', async () => {
    const got: unknown[] = [];
    const { rows, taken } = await bootRows(async function* () {
      got.push(yield 'first');
      try {
        got.push(yield 'second');
      } catch (error) {
        got.push(error);
      }
      yield 'third';
    });
    const iterator = rows();
    await iterator.next('nobody hears this');
    expect(await iterator.next('hello')).toEqual({ done: false, value: 'second' });
    expect(await iterator.throw('ouch')).toEqual({ done: false, value: 'third' });
    expect(await taken()).toBe(true);
    expect(await iterator.throw('fatal').catch((error: unknown) => error)).toBe('fatal');
    expect(got).toEqual(['hello', 'ouch']);
    expect(await taken()).toBe(false);
  });

  it.each([
    ['at once', []],
    ['later', [0]],
  ])('fails with the method’s own error, %s, and is free then', async (_when, items) => {
    const { rows, taken } = await bootRows(async function* () {
      yield* items;
      throw new Error('broken');
    });
    const seen: unknown[] = [];
    await expect(read(rows(), seen)).rejects.toThrow('broken');
    expect([seen, await taken()]).toEqual([items, false]);
  });

  it('fails with LockLostError at its end where its lease was lost', async () => {
    const { store, rows } = await bootRows(async function* () {
      yield 1;
      await store.mutex.release({ key: KEY, owner: currentLease()?.owner ?? '', keepFor: 0 });
      yield 2;
    });
    const seen: unknown[] = [];
    await expect(read(rows(), seen)).rejects.toMatchObject({ name: 'LockLostError', result: 'end' });
    expect(seen).toEqual([1, 2]);
  });

  it('may be another async iterable, with the option returns, and nothing else', async () => {
    class Table {
      ended = 0;
      @DistributedLock({ returns: 'iterable' })
      rows(): AsyncIterable<unknown> {
        const end = () => void this.ended++;
        return {
          [Symbol.asyncIterator]: () => ({
            next: async () => ({ done: false, value: currentLease()?.key }),
            return: async () => (end(), { done: true, value: undefined }),
          }),
        };
      }
      @DistributedLock({ returns: 'iterable' })
      wrong() {
        return of(1) as unknown as AsyncIterable<unknown>;
      }
    }
    const { get, isTaken } = await boot({ providers: [Table] });
    for await (const item of get(Table).rows()) {
      expect(item).toBe('Table.rows-locks');
      break;
    }
    expect([get(Table).ended, await isTaken('Table.rows-locks')]).toEqual([1, false]);
    await expect(read(get(Table).wrong())).rejects.toBeInstanceOf(LockConfigError);
    expect(await isTaken('Table.wrong-locks')).toBe(false);
  });

  it('waits for its other iterations, each of which calls the method', async () => {
    const { table, rows, waiting } = await bootRows(undefined, { retryCount: 0, retryInterval: 2 });
    const first = rows();
    await first.next();
    const second = read(rows());
    await eventually(() => expect(waiting).toEqual([KEY]));
    expect(table.calls).toBe(1);
    await first.return(undefined);
    expect(await second).toEqual([1, 2, 3]);
    expect(table.calls).toBe(2);
  });

  async function* nine() {
    yield 9;
  }
  it.each<[string, DistributedLockOptions, unknown]>([
    ["ends with onTimeout: 'skip'", { onTimeout: 'skip' }, []],
    ['has the items that the function returns', { onTimeout: () => [7, 8] }, [7, 8]],
    ['has the items of the iterable that the function returns', { onTimeout: nine }, [9]],
    ['fails by default', {}, expect.any(LockTimeoutError)],
  ])('whose key is taken %s', async (_what, options, outcome) => {
    const { table, rows, occupy } = await bootRows(undefined, { waitTimeout: 0, ...options });
    await occupy();
    expect(await read(rows()).catch((error: unknown) => error)).toEqual(outcome);
    expect(table.calls).toBe(0);
  });
});

describe('a reader of a locked async iterable', () => {
  it('is outside of the call chain of the method, and stays in its own, and in its own async context', async () => {
    const storage = new AsyncLocalStorage<string>();
    const inside: unknown[] = [];
    const outside: unknown[] = [];
    const { rows, locks } = await bootRows(async function* () {
      for (let item = 0; item < 3; item++) {
        await Promise.resolve();
        inside.push(currentLease()?.key);
        yield item;
        inside.push(currentLease()?.key);
      }
    });
    for await (const item of rows()) outside.push(item, currentLease()?.key);
    expect([inside, outside]).toEqual([Array(6).fill(KEY), [0, undefined, 1, undefined, 2, undefined]]);
    outside.splice(0);
    await storage.run('reader', () =>
      locks.using('outer', async () => {
        for await (const _ of rows()) outside.push(currentLease()?.key, storage.getStore());
      }),
    );
    expect(outside).toEqual(['outer', 'reader', 'outer', 'reader', 'outer', 'reader']);
  });

  it('may ask for several items at once, and gets them in order', async () => {
    const { rows, taken, table } = await bootRows();
    const iterator = rows();
    const steps = await Promise.all([iterator.next(), iterator.next(), iterator.next(), iterator.next(), iterator.next()]);
    expect(steps.map(({ value }) => value)).toEqual([1, 2, 3, 'end', undefined]);
    expect([table.calls, await taken()]).toEqual([1, false]);
  });

  it.each([{ fair: false }, { fair: true }])('may leave at once while it waits, and leaves no lock behind: %p', async (options) => {
    const { rows, table, occupy, waiting } = await bootRows(undefined, { retryCount: 0, retryInterval: 2, ...options });
    const lease = await occupy();
    const iterator = rows();
    const step = iterator.next();
    await eventually(() => expect(waiting).toEqual([KEY]));
    expect(await iterator.return('enough')).toEqual({ done: true, value: 'enough' });
    expect(await step).toEqual({ done: true, value: undefined });
    await lease.release();
    const next = await occupy();
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
    const last = iterator.next();
    await eventually(() => gate.arrived === 1);
    expect(await taken()).toBe(true);
    gate.open();
    expect(await last).toEqual({ done: true, value: 'enough' });
    expect(await taken()).toBe(false);
  });

  it('releases the lock where the iterable is disposed of', async () => {
    const { rows, taken } = await bootRows();
    {
      await using iterator = rows();
      await iterator.next();
      expect(await taken()).toBe(true);
    }
    expect(await taken()).toBe(false);
  });
});
