import { DiscoveryService } from '@nestjs/core';
import { DistributedLock, LockConfigError } from 'nestjs-distributed-lock';
import { boot } from './boot.js';
import { Tally } from './tally.js';

const PATIENT = { retryCount: 0, retryInterval: 2 };

class Stock {
  readonly tally = new Tally();
  steps: string[] = [];

  @DistributedLock(PATIENT)
  async reduce(by = 'base') {
    this.steps.push(by);
    await this.tally.add();
    return by;
  }
}

describe('a locked method and classes', () => {
  it('is inherited, and its lock is the same for the class and its subclass', async () => {
    class FruitStock extends Stock {}
    const { get, acquired } = await boot({ providers: [Stock, FruitStock] });
    const tally = Object.assign(get(FruitStock), { tally: get(Stock).tally }).tally;
    await Promise.all(Array.from({ length: 10 }, (_, index) => (index % 2 ? get(Stock) : get(FruitStock)).reduce()));
    expect(tally).toMatchObject({ value: 10, most: 1 });
    expect(new Set(acquired)).toEqual(new Set(['Stock.reduce-locks']));
  });

  it('is locked when an override calls super, and not when it does not', async () => {
    class Calling extends Stock {
      override async reduce() {
        return `calling ${await super.reduce()}`;
      }
    }
    class Silent extends Stock {
      override async reduce() {
        return 'silent';
      }
    }
    const { get, acquired } = await boot({ providers: [Calling, Silent] });
    expect(await get(Silent).reduce()).toBe('silent');
    expect(acquired).toEqual([]);
    expect(await get(Calling).reduce()).toBe('calling base');
    expect(acquired).toEqual(['Stock.reduce-locks']);
  });

  it('takes both keys when a locked override calls super, its own first', async () => {
    class FruitStock extends Stock {
      @DistributedLock()
      override async reduce() {
        return `fruit ${await super.reduce()}`;
      }
    }
    const { get, acquired } = await boot({ providers: [FruitStock] });
    expect(await get(FruitStock).reduce()).toBe('fruit base');
    expect(acquired).toEqual(['FruitStock.reduce-locks', 'Stock.reduce-locks']);
  });

  it('takes the keys of stacked decorators from the top down, and gives all of them back', async () => {
    class Shop {
      @DistributedLock({ value: 'house' })
      @DistributedLock({ value: 'room', key: (room: string) => room })
      async clean(room: string) {
        return room;
      }
    }
    const { get, acquired, isTaken } = await boot({ providers: [Shop] });
    expect(await get(Shop).clean('a')).toBe('a');
    expect(acquired).toEqual(['house-locks', 'room-a-locks']);
    expect(await Promise.all(acquired.map(isTaken))).toEqual([false, false]);
  });

  it('knows what a stacked method returns from the decorator below', async () => {
    class Shop {
      @DistributedLock({ value: 'house' })
      @DistributedLock({ value: 'room' })
      async *rooms() {
        yield 1;
      }
    }
    const { get, acquired } = await boot({ providers: [Shop] });
    for await (const room of get(Shop).rooms()) expect(room).toBe(1);
    expect(acquired).toEqual(['house-locks', 'room-locks']);
  });

  it('can be taken off its instance and called on it again', async () => {
    const { get, acquired } = await boot({ providers: [Stock] });
    const { reduce } = get(Stock);
    expect(await reduce.call(get(Stock), 'called')).toBe('called');
    expect(await reduce.bind(get(Stock))('bound')).toBe('bound');
    expect(acquired).toHaveLength(2);
  });
});

describe('a locked method without a lock to take', () => {
  it('rejects, and does not run, where it is called without its instance', async () => {
    const { get } = await boot({ providers: [Stock] });
    const { reduce } = get(Stock);
    await expect(reduce('loose')).rejects.toThrow(/Stock\.reduce: .*called without its instance/);
    await expect(reduce('loose')).rejects.toBeInstanceOf(LockConfigError);
    expect(get(Stock).steps).toEqual([]);
  });

  it.each([
    ['an instance made with new', () => new Stock()],
    ['a copy without its prototype’s injections', () => Object.assign(Object.create(Stock.prototype) as Stock, { steps: [] })],
  ])('rejects, and does not run, on %s', async (_what, make) => {
    await boot({ providers: [Stock] });
    const stock = make();
    await expect(stock.reduce()).rejects.toThrow(/Stock\.reduce: .*not made by Nest.*instead of calling `new`/);
    await expect(stock.reduce()).rejects.toBeInstanceOf(LockConfigError);
    expect(stock.steps).toEqual([]);
  });

  it('does not look through the app for an unknown instance once the boot is over', async () => {
    const { app } = await boot({ providers: [Stock] });
    const list = jest.spyOn(app.get(DiscoveryService, { strict: false }), 'getProviders');
    await expect(new Stock().reduce()).rejects.toBeInstanceOf(LockConfigError);
    expect(list).not.toHaveBeenCalled();
  });

  it('rejects, and does not run, while the instance is under construction', async () => {
    class Eager {
      bodies = 0;
      readonly first = this.load().catch((error: unknown) => error);

      @DistributedLock()
      async load() {
        return ++this.bodies;
      }
    }
    const { get } = await boot({ providers: [Eager] });
    expect(await get(Eager).first).toBeInstanceOf(LockConfigError);
    expect(await get(Eager).first).toHaveProperty('message', expect.stringMatching(/Eager\.load: .*constructor/));
    expect(await get(Eager).load()).toBe(1);
  });
});
