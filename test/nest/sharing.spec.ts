import { Injectable } from '@nestjs/common';
import {
  currentLease,
  DistributedLock,
  LockConfigError,
  ReadLock,
  Semaphore,
  WriteLock,
  type ReadWritePolicy,
} from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { boot } from './boot.js';
import { Gate } from './gate.js';

const LONG = { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 5 };

/** A page that is read and written under one key each. */
function pageWith(policy?: ReadWritePolicy) {
  @Injectable()
  class Page {
    readonly reading = new Gate();
    readonly writing = new Gate();

    @ReadLock({ value: 'page', policy, key: (id: string) => id, ...LONG })
    async read(_id: string) {
      await this.reading.pass();
      return currentLease();
    }
    @WriteLock({ value: 'page', policy, key: (id: string) => id, ...LONG })
    async write(_id: string) {
      await this.writing.pass();
      return currentLease();
    }
    @ReadLock({ value: 'page', policy, key: (id: string) => id, ...LONG })
    async peek(_id: string) {
      return 'peeked';
    }
    @WriteLock({ value: 'page', policy, key: (id: string) => id, ...LONG })
    async writeAndPeek(id: string) {
      return [await this.peek(id), await this.writeAgain(id)];
    }
    @WriteLock({ value: 'page', policy, key: (id: string) => id, ...LONG })
    async writeAgain(_id: string) {
      return 'written';
    }
    @ReadLock({ value: 'page', policy, key: (id: string) => id, ...LONG })
    async readAndWrite(id: string) {
      return this.writeAgain(id);
    }
  }
  return Page;
}

async function bootPage(policy?: ReadWritePolicy) {
  const Page = pageWith(policy);
  const booted = await boot({ providers: [Page] });
  return { ...booted, page: booted.get(Page) };
}

describe('@ReadLock and @WriteLock', () => {
  it('let readers of one key run together, and a writer when they are done', async () => {
    const { page, waiting } = await bootPage();
    const readers = [page.read('a'), page.read('a'), page.read('a')];
    await eventually(() => page.reading.arrived === 3);
    const writer = page.write('a');
    await eventually(() => expect(waiting).toEqual(['page-a-locks']));
    expect(page.writing.arrived).toBe(0);
    page.reading.open();
    await Promise.all(readers);
    await eventually(() => page.writing.arrived === 1);
    page.writing.open();
    await writer;
  });

  it('let nobody beside a writer', async () => {
    const { page, waiting } = await bootPage();
    const writers = [page.write('a'), page.write('a')];
    await eventually(() => page.writing.arrived === 1 && waiting.length === 1);
    const peeked = page.peek('a');
    await eventually(() => expect(waiting).toHaveLength(2));
    expect(page.writing.arrived).toBe(1);
    page.writing.open();
    expect(await peeked).toBe('peeked');
    await Promise.all(writers);
  });

  it('keep other keys out of it', async () => {
    const { page } = await bootPage();
    const writer = page.write('a');
    await eventually(() => page.writing.arrived === 1);
    expect(await page.peek('b')).toBe('peeked');
    page.writing.open();
    await writer;
  });

  it.each<[ReadWritePolicy | undefined, string]>([
    [undefined, 'waits behind the writer'],
    ['fair', 'waits behind the writer'],
    ['readers', 'reads at once'],
  ])('with policy %s: a reader that comes after a waiting writer %s', async (policy, outcome) => {
    const { page, waiting } = await bootPage(policy);
    const reader = page.read('a');
    await eventually(() => page.reading.arrived === 1);
    const writer = page.write('a');
    await eventually(() => expect(waiting).toHaveLength(1));
    let hasPeeked = false;
    const peeking = page.peek('a').then(() => (hasPeeked = true));
    if (outcome === 'reads at once') await peeking;
    else await eventually(() => expect(waiting).toHaveLength(2));
    expect([page.writing.arrived, hasPeeked]).toEqual([0, outcome === 'reads at once']);
    page.reading.open();
    page.writing.open();
    await Promise.all([reader, writer, peeking]);
  });

  it('let a writer read and write again, and give readers the token of the last write', async () => {
    const { page } = await bootPage();
    expect(await page.writeAndPeek('a')).toEqual(['peeked', 'written']);
    page.reading.open();
    page.writing.open();
    const written = (await page.write('a'))?.fencingToken;
    expect([(await page.read('a'))?.fencingToken, (await page.read('a'))?.fencingToken]).toEqual([written, written]);
    expect((await page.write('a'))?.fencingToken).toBeGreaterThan(written ?? 0);
  });

  it('refuse a reader that calls a writer of its key, at once', async () => {
    const { page, isTaken } = await bootPage();
    const error: unknown = await page.readAndWrite('a').catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockConfigError);
    expect(error).toHaveProperty('message', expect.stringMatching(/holds the read lock and asks for the write lock/));
    expect(await isTaken('page-a-locks')).toBe(false);
  });
});

describe('@Semaphore', () => {
  class Press {
    readonly gate = new Gate();
    inside = 0;
    most = 0;

    @Semaphore({ value: 'press', permits: 3, ...LONG })
    async print() {
      this.most = Math.max(this.most, ++this.inside);
      await this.gate.pass();
      this.inside--;
    }
    @Semaphore({ value: 'press', permits: 3, count: 2, ...LONG })
    async printLarge() {
      await this.gate.pass();
      return currentLease()?.key;
    }
  }

  it('lets as many calls run at a time as there are permits', async () => {
    const { get, waiting } = await boot({ providers: [Press] });
    const press = get(Press);
    const calls = Array.from({ length: 10 }, () => press.print());
    await eventually(() => waiting.length === 7);
    expect(press.gate.arrived).toBe(3);
    press.gate.open();
    await Promise.all(calls);
    expect([press.gate.arrived, press.most]).toEqual([10, 3]);
  });

  it('takes as many at once as "count" says, all or none', async () => {
    const { get, waiting } = await boot({ providers: [Press] });
    const press = get(Press);
    const two = [press.print(), press.print()];
    await eventually(() => press.gate.arrived === 2);
    const large = press.printLarge();
    await eventually(() => expect(waiting).toEqual(['press-locks']));
    expect(press.gate.arrived).toBe(2);
    press.gate.open();
    expect(await large).toBe('press-locks');
    await Promise.all(two);
  });
});

describe('decorators that lock, on one method', () => {
  it('take their locks from the uppermost to the lowest', async () => {
    class Shop {
      @Semaphore({ value: 'all', permits: 2 })
      @ReadLock({ value: 'catalogue' })
      @WriteLock({ value: 'stock', key: (sku: string) => sku })
      @DistributedLock({ value: 'order' })
      async buy(sku: string) {
        return `${sku} under ${currentLease()?.key}`;
      }
    }
    const { get, acquired } = await boot({ providers: [Shop] });
    expect(await get(Shop).buy('apple')).toBe('apple under order-locks');
    expect(acquired).toEqual(['all-locks', 'catalogue-locks', 'stock-apple-locks', 'order-locks']);
    expect([Shop.prototype.buy.name, Shop.prototype.buy.length]).toEqual(['buy', 1]);
  });

  it('may be a write lock above a read lock of one key, but not below', async () => {
    class Shop {
      @WriteLock({ value: 'stock' })
      @ReadLock({ value: 'stock' })
      async right() {
        return 'read under the write lock';
      }
      @ReadLock({ value: 'stock' })
      @WriteLock({ value: 'stock' })
      async wrong() {}
    }
    const shop = (await boot({ providers: [Shop] })).get(Shop);
    expect(await shop.right()).toBe('read under the write lock');
    await expect(shop.wrong()).rejects.toBeInstanceOf(LockConfigError);
  });
});
