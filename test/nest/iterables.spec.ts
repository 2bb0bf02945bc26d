import { of } from 'rxjs';
import { currentLease, LockConfigError, LockTimeoutError, type DistributedLockOptions } from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { bootKind, EXCLUSIVE, KINDS } from './kinds.js';
import { bootRows as bootRowsOf, KEY, read } from './rows.js';

describe.each(KINDS)('a method with $name that returns an async iterable', (kind) => {
  const bootRows = (...[source, options]: Parameters<typeof bootRowsOf>) => bootRowsOf(source, options, kind);

  it('is neither called nor locked until the first item is asked for', async () => {
    const { table, rows, acquired, taken } = await bootRows();
    const unread = rows();
    await unread.return(undefined);
    expect(await read(unread)).toEqual([]);
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

  it('is locked until its reader breaks off, and the method may clean up under the lock', async () => {
    const { table, rows, taken } = await bootRows();
    for await (const item of rows()) if (item === 2) break;
    expect([table.log, await taken()]).toEqual([[KEY], false]);
  });

  it('is locked until its reader throws, whose error comes through', async () => {
    const { table, rows, taken } = await bootRows();
    const error = new Error('cannot read');
    const reading = (async () => {
      for await (const item of rows()) if (item === 2) throw error;
    })();
    expect(await reading.catch((reason: unknown) => reason)).toBe(error);
    expect([table.log, await taken()]).toEqual([[KEY], false]);
  });

  it('answers return() with its value', async () => {
    const { rows, taken } = await bootRows();
    const iterator = rows();
    await iterator.next();
    expect(await iterator.return('enough')).toEqual({ done: true, value: 'enough' });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(await taken()).toBe(false);
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
    ['at once', 0, []],
    ['later', 1, [0]],
  ])('fails with the method’s own error, %s, and is free then', async (_when, after, items) => {
    const { rows, taken } = await bootRows(async function* () {
      for (let item = 0; item < after; item++) yield item;
      throw new Error('broken');
    });
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const item of rows()) seen.push(item);
    })();
    await expect(reading).rejects.toThrow('broken');
    expect([seen, await taken()]).toEqual([items, false]);
  });

  it('fails with LockLostError at its end where its lease was lost', async () => {
    const { steal, rows } = await bootRows(async function* () {
      yield 1;
      await steal(currentLease());
      yield 2;
    });
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const item of rows()) seen.push(item);
    })();
    await expect(reading).rejects.toMatchObject({ name: 'LockLostError', result: 'end' });
    expect(seen).toEqual([1, 2]);
  });

  it('says with returns what its type does not tell', async () => {
    class Table {
      ended = 0;
      @kind.lock({ returns: 'iterable' })
      rows(): AsyncIterable<unknown> {
        const end = () => void this.ended++;
        return {
          [Symbol.asyncIterator]: () => ({
            next: async () => ({ done: false, value: currentLease()?.key }),
            return: async () => (end(), { done: true, value: undefined }),
          }),
        };
      }
      @kind.lock({ returns: 'iterable' })
      wrong() {
        return of(1) as unknown as AsyncIterable<unknown>;
      }
    }
    const { get, isTaken } = await bootKind(kind, { providers: [Table] });
    for await (const item of get(Table).rows()) {
      expect(item).toBe('Table.rows-locks');
      break;
    }
    expect([get(Table).ended, await isTaken('Table.rows-locks')]).toEqual([1, false]);
    await expect(read(get(Table).wrong())).rejects.toBeInstanceOf(LockConfigError);
    expect(await isTaken('Table.wrong-locks')).toBe(false);
  });
});

describe.each(EXCLUSIVE)('a method with $name that returns an async iterable', (kind) => {
  it('waits for its other iterations, each of which calls the method', async () => {
    const { table, rows, waiting } = await bootRowsOf(undefined, { retryCount: 0, retryInterval: 2 }, kind);
    const first = rows();
    await first.next();
    const second = read(rows());
    await eventually(() => expect(waiting).toEqual([KEY]));
    expect(table.calls).toBe(1);
    await first.return(undefined);
    expect(await second).toEqual([1, 2, 3]);
    expect(table.calls).toBe(2);
  });
});

describe.each(KINDS)('an async iterable by $name whose key is taken', (kind) => {
  const bootRows = (...[source, options]: Parameters<typeof bootRowsOf>) => bootRowsOf(source, options, kind);

  it.each<[string, DistributedLockOptions, unknown]>([
    ["ends with onTimeout: 'skip'", { onTimeout: 'skip' }, []],
    ['has the one item that the function returns', { onTimeout: () => 'instead' }, ['instead']],
    ['has the items that the function returns', { onTimeout: () => [7, 8] }, [7, 8]],
    [
      'has the items of the iterable that the function returns',
      {
        onTimeout: async function* () {
          yield 9;
        },
      },
      [9],
    ],
    ['ends where the function returns nothing', { onTimeout: () => undefined }, []],
  ])('%s', async (_what, options, items) => {
    const { table, rows, occupy } = await bootRows(undefined, { waitTimeout: 0, ...options });
    await occupy(KEY);
    expect(await read(rows())).toEqual(items);
    expect(table.calls).toBe(0);
  });

  it('fails by default', async () => {
    const { table, rows, occupy } = await bootRows(undefined, { waitTimeout: 0 });
    await occupy(KEY);
    await expect(read(rows())).rejects.toBeInstanceOf(LockTimeoutError);
    expect(table.calls).toBe(0);
  });
});
