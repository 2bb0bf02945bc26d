// Ten pages are open over three stores with ten thousand keys each.
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { locksToken, type Locks, type LocksOptions } from 'nestjs-distributed-lock/core';
import { DistributedLockDashboardModule } from 'nestjs-distributed-lock/dashboard';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import type { PageState } from '../../../lib/dashboard/dashboard.protocol.js';
import { serve } from '../../integrations/http-app.js';
import { eventually, staysTrue } from '../../support/eventually.js';
import { useBrowser } from './browser.js';

const KEYS = 10_000;
const PAGES = 10;
/** Milliseconds between two questions of a page; and of the measurement. */
const AGAIN = 2_000;
const LENGTH = 20_000;
const tabs = useBrowser();
const defaults: LocksOptions['defaults'] = { keyTimeout: 3_600_000 };
const cpu = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

it('three times ten thousand keys block no process for 50 ms, and take a twentieth of a core with ten pages open', async () => {
  const others = ['stock', 'mail'];
  const imports = [
    ...others.map((name) => DistributedLockModule.forRoot({ name, store: memoryStore(), logger: false, defaults })),
    DistributedLockDashboardModule.forRoot({ authorize: () => ({ by: 'anna' }) }),
  ];
  const { app, ask, locks, url } = await serve('express', { imports }, { defaults });
  for (const each of [locks, ...others.map((name) => app.get<Locks>(locksToken(name)))])
    for (let i = 0; i < KEYS; i++) await each.acquire(`shop-stock-${i}`);
  const state = async () => (await ask('locks/state', { headers: { 'x-lock-dashboard': '1' } })).body as PageState;
  await eventually(async () => (await state()).found === 3 * KEYS);

  const page = await tabs.open(`${url}/locks`);
  await page.getByText(`500 of ${3 * KEYS} keys`).waitFor();
  await page.locator('#search').fill('stock-9999');
  await page.getByText('3 of 3 keys').waitFor();

  /** The part of a core that is used while so many pages are open. */
  const shareOf = async (pages: number, length: number): Promise<number> => {
    const due = Array.from({ length: pages }, (_, index) => performance.now() + (index * AGAIN) / pages);
    const before = cpu();
    let last = before;
    await staysTrue(() => {
      for (const [index, at] of due.entries()) {
        if (at > performance.now()) continue;
        due[index] = at + AGAIN;
        void state().catch(() => undefined);
      }
      // Of the processor: what other programs use meanwhile does not count.
      const [since, now] = [last, cpu()];
      last = now;
      // eslint-disable-next-line tests/no-upper-bound-on-time -- time of the processor
      expect(now - since).toBeLessThan(50);
    }, length);
    return (cpu() - before) / length;
  };
  await page.close();
  const idle = await shareOf(0, LENGTH / 5);
  const busy = (await shareOf(PAGES, LENGTH)) - idle;
  // eslint-disable-next-line tests/no-upper-bound-on-time -- time of the processor
  expect(busy).toBeLessThan(0.05);
});
