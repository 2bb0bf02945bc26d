// The page in a browser, served by an app, over locks of other processes.
import { DistributedLockDashboardModule } from 'nestjs-distributed-lock/dashboard';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { ADAPTERS, serve, type Adapter } from '../../integrations/http-app.js';
import { forkChild } from '../../support/child.js';
import { eventually } from '../../support/eventually.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { keysOn, useBrowser } from './browser.js';

const tabs = useBrowser();
let redis: RedisServer;
beforeAll(async () => void (redis = await startRedis({ port: 'free' })));
afterAll(() => redis.stop());

const urlOf = ({ port }: RedisServer) => `redis://127.0.0.1:${port}`;
const SELLS = { verb: 'hold', label: 'ShopService.sell' };

async function shop() {
  const child = await forkChild<{ type: 'done' }>('test/dashboard/situations.child.ts', { args: [urlOf(redis), 'shop'] });
  await child.waitFor('done');
  return child;
}

const open = (adapter: Adapter) => {
  const imports = [DistributedLockDashboardModule.forRoot({ path: 'ops/locks', authorize: () => ({ by: 'anna' }) })];
  return serve(adapter, { imports }, { store: redisStore({ url: urlOf(redis) }) });
};

it.each(ADAPTERS)('on %s a key of another process is seen, opened and taken away', async (adapter) => {
  const key = `order:${adapter}`;
  const { locks, url } = await open(adapter);
  const child = await shop();
  const page = await tabs.open(`${url}/ops/locks`);
  child.send({ ...SELLS, key });
  await eventually(async () => (await keysOn(page)).includes(key));
  const waiting = locks.acquire(key, { label: 'ReportService.print', waitTimeout: 60_000 });
  await page.locator('#rows tbody button', { hasText: key }).click();
  const drawer = page.locator('#drawer');
  await drawer.getByText('ReportService.print').waitFor();
  await drawer.getByText('ShopService.sell').waitFor();
  await drawer.locator('button', { hasText: 'Take it away' }).click();
  await page.keyboard.type('it hangs');
  await page.keyboard.press('Enter');
  await page.locator('dialog [role=status]').waitFor();
  const next = await waiting;
  expect((await locks.inspect(key)).holders).toMatchObject([{ owner: next.owner }]);
  await next.release();
  await child.kill();
});

/** Resolves when the time that is left is written anew. */
const NEXT = `new Promise((resolve) => {
  const [term] = [...document.querySelectorAll('#drawer dt')].filter(({ textContent }) => textContent === 'lease ends in');
  const { nextElementSibling: shown } = term;
  const before = shown.textContent;
  const observer = new MutationObserver(() => {
    if (shown.textContent === before) return;
    observer.disconnect();
    resolve(shown.textContent);
  });
  observer.observe(shown, { childList: true, characterData: true, subtree: true });
})`;

it('the time that is left is that of the store', async () => {
  const { url } = await open('express');
  const child = await shop();
  child.send({ ...SELLS, key: 'countdown' });
  await child.waitFor('done');
  // It does not renew.
  child.pause();
  const client = redis.client();
  await client.pexpire('countdown', 59_000);
  const page = await tabs.open(`${url}/ops/locks?store=default&key=countdown`);
  await page.locator('#drawer dt', { hasText: 'lease ends in' }).waitFor();
  const differences: number[] = [];
  for (let i = 0; i < 5; i++) {
    const [, seconds] = /^([\d.]+) s$/.exec(await page.evaluate<string>(NEXT))!;
    differences.push(Math.abs(Number(seconds) * 1000 - (await client.pttl('countdown'))));
  }
  // The machine may be busy between the two readings.
  expect(Math.min(...differences)).toBeLessThan(200);
  await child.kill();
});
