import { DiscoveryService } from '@nestjs/core';
import { DistributedLock, LockConfigError } from 'nestjs-distributed-lock';
import { boot } from './boot.js';

class Stock {
  steps: string[] = [];

  @DistributedLock()
  async reduce(by = 'base') {
    this.steps.push(by);
    return by;
  }
}

describe('a locked method', () => {
  it('knows what a stacked method returns from the decorator below', async () => {
    class Shop {
      @DistributedLock({ value: 'house' })
      @DistributedLock({ value: 'room' })
      async *rooms() {
        yield 1;
      }
    }
    const { get, acquired, isTaken } = await boot({ providers: [Shop] });
    for await (const room of get(Shop).rooms()) expect(room).toBe(1);
    expect(acquired).toEqual(['house-locks', 'room-locks']);
    expect(await Promise.all(acquired.map(isTaken))).toEqual([false, false]);
  });

  it('can be taken off its instance and called on it again', async () => {
    const { get, acquired } = await boot({ providers: [Stock] });
    const { reduce } = get(Stock);
    expect(await reduce.call(get(Stock), 'called')).toBe('called');
    expect(await reduce.bind(get(Stock))('bound')).toBe('bound');
    expect(acquired).toHaveLength(2);
  });

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
});
