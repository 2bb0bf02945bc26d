import { Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';
import { boot, isTaken, type Booted } from '../nest/boot.js';
import { Counter, expectOneAtATime, PATIENT } from './counter.js';
import { way } from './place.js';

/** Reports at the stores of both apps whether its key is taken there. */
@Injectable()
class Reporter {
  @DistributedLock({ value: 'report', ...PATIENT })
  async report(...apps: Booted[]) {
    return Promise.all(apps.map(({ store }) => isTaken(store, 'report-locks')));
  }
}
const bootTwo = async (metadata: Parameters<typeof boot>[0]) => [await boot(metadata), await boot(metadata)] as const;

way('Two apps in one process', 'each with a store of its own, sharing a class', () => {
  it('is locked at the store of the app that made the instance', async () => {
    const [first, second] = await bootTwo({ providers: [Reporter] });
    expect(await first.get(Reporter).report(first, second)).toEqual([true, false]);
    expect(await second.get(Reporter).report(first, second)).toEqual([false, true]);
    expect([first.acquired, second.acquired]).toEqual([['report-locks'], ['report-locks']]);
  });

  it('goes on when the other app is closed', async () => {
    const [first, second] = await bootTwo({ providers: [Reporter] });
    await second.app.close();
    expect(await first.get(Reporter).report(first)).toEqual([true]);
    await expect(second.get(Reporter).report()).rejects.toHaveProperty('name', 'LockAbortedError');
  });
});

way('Two apps in one process', 'on the same store', () => {
  it('is locked across both', async () => {
    const first = await boot({ providers: [Counter] });
    const second = await boot({ providers: [Counter] }, { store: first.store });
    const acquired = first.acquired;
    second.locks.on('acquired', ({ key }) => void acquired.push(key));
    await expectOneAtATime({ acquired }, first.get(Counter), second.get(Counter));
  });
});

way('Two apps in one process', 'one instance, created by the first, a useValue in the second', () => {
  it('is locked at the store of the app that made it', async () => {
    const first = await boot({ providers: [Reporter] });
    const second = await boot({ providers: [{ provide: Reporter, useValue: first.get(Reporter) }] });
    expect(await second.get(Reporter).report(first, second)).toEqual([true, false]);
  });
});

way('Two apps in one process', 'one instance as a useValue in both', () => {
  const providers = () => [{ provide: Counter, useValue: new Counter() }];

  it('is locked at the store of the app that booted last, whichever app is asked for it', async () => {
    const [first, second] = await bootTwo({ providers: providers() });
    expect(first.get(Counter)).toBe(second.get(Counter));
    await expectOneAtATime(second, first.get(Counter), second.get(Counter));
    expect(first.acquired).toEqual([]);
  });

  it('is locked again at the store of the first when the second is closed', async () => {
    const [first, second] = await bootTwo({ providers: providers() });
    await second.app.close();
    await expectOneAtATime(first, first.get(Counter));
  });
});
