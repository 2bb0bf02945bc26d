// One incident, as somebody on call meets it: the page is opened when it has happened, over a wire that breaks.
import type { Locks, LocksOptions } from 'nestjs-distributed-lock/core';
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { locksToken } from 'nestjs-distributed-lock/core';
import { DistributedLockDashboardModule } from 'nestjs-distributed-lock/dashboard';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { serve } from '../../integrations/http-app.js';
import { eventually } from '../../support/eventually.js';
import { startProxy } from '../../support/tcp-proxy.js';
import { useBrowser } from './browser.js';

const KEYS = 10_000;
const TIMEOUTS = 200;
const tabs = useBrowser();
const BYTES = { endOfRequest: (bytes: Buffer) => bytes.length, endOfReply: (bytes: Buffer) => bytes.length, isPush: () => true };
const defaults: LocksOptions['defaults'] = { keyTimeout: 600_000 };

it('an operator finds a stuck holder among 30,000 keys and frees it, though the stream breaks', async () => {
  const others = ['stock', 'mail'];
  const imports = [
    ...others.map((name) => DistributedLockModule.forRoot({ name, store: memoryStore(), logger: false, defaults })),
    DistributedLockDashboardModule.forRoot({ authorize: () => ({ by: 'anna' }) }),
  ];
  const { app, locks, url } = await serve('express', { imports }, { defaults });
  const stores = [locks, ...others.map((name) => app.get<Locks>(locksToken(name)))];
  for (const each of stores) for (let i = 2; i < KEYS; i++) await each.acquire(`shop-stock-${i}`);

  // No page is open.
  const stuck = await locks.acquire('import', { label: 'Import.run' });
  await locks.forceRelease({ key: 'import' }, { reason: 'it hangs', by: 'ben', grace: 0 });
  expect(stuck.signal.aborted).toBe(true);
  await locks.acquire('hot', { label: 'Cart.clear' });
  for (let i = 0; i < TIMEOUTS; i++) await expect(locks.acquire('hot', { label: 'Cart.checkout', waitTimeout: 1 })).rejects.toThrow();
  // One caller has the key, and another one of its process is behind it: the process has reserved tokens for both.
  const first = await locks.acquire('import', { label: 'Import.first' });
  const [holding, next] = ['Import.second', 'Import.third'].map((label) => locks.acquire('import', { label, waitTimeout: 600_000 }));
  await first.release();
  const holder = await holding!;

  // The first listing takes its time.
  let go!: () => void;
  const isLet = new Promise<void>((resolve) => (go = resolve));
  for (const each of stores) {
    const list = each.list.bind(each);
    jest.spyOn(each, 'list').mockImplementation(async function* (options) {
      let count = 0;
      for await (const report of list(options)) {
        yield report;
        if (++count === 700) await isLet;
      }
    });
  }
  const proxy = await startProxy({ port: Number(new URL(url).port) }, Math.random, BYTES);
  const page = await tabs.open(`http://127.0.0.1:${proxy.port}/locks?q=shop-stock-9999`);
  for (const name of ['default', ...others]) await page.getByText(`${name} is being listed: 700 keys so far.`).waitFor();
  expect(await page.locator('.numbers button', { hasText: 'Held' }).innerText()).toContain('…');

  const lines = page.locator('#events li');
  await lines.filter({ hasText: /taken away\s+import Import\.run .* by ben: it hangs/ }).waitFor();
  await lines
    .filter({ hasText: /timed out\s+× \d+, [\d:]+–[\d:]+ hot Cart\.checkout/ })
    .first()
    .waitFor();
  expect(await lines.count()).toBeLessThan(10);

  go();
  await page.locator('.numbers button', { hasText: `${3 * KEYS - 4}` }).waitFor();
  await page.getByText(`3 of ${3 * KEYS - 4} keys`).waitFor();

  await page.locator('#search').fill('import');
  await page.locator('#rows tbody button', { hasText: 'import' }).click();
  const drawer = page.locator('#drawer');
  await drawer.getByText('Import.second').waitFor();
  await drawer.locator('button', { hasText: 'Take it away' }).click();
  await page.keyboard.type('it hangs again');
  await page.keyboard.press('Enter');
  await page.locator('dialog [role=status]', { hasText: /released|taken by force/ }).waitFor();
  expect(holder.signal.reason).toMatchObject({ revoked: { by: 'anna', reason: 'it hangs again' } });
  const last = await next!;
  expect(last.signal.aborted).toBe(false);
  await page.keyboard.press('Enter');
  await drawer.getByText('Import.third').waitFor();

  proxy.silence();
  await page.locator('#connection', { hasText: 'offline' }).waitFor();
  await page.getByText(/as of \d\d:\d\d:\d\d/).waitFor();
  expect(await page.locator('main').getAttribute('class')).toBe('stale');
  await proxy.heal();
  await page.locator('#connection', { hasText: 'live' }).waitFor();
  await eventually(async () => expect(await page.locator('main').getAttribute('class')).toBeNull());
  await page.close();
  await proxy.close();
});
