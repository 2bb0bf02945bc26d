// What the page looks like. With SCREENSHOTS=1 the pictures of the documentation are taken again.
import type { Page } from 'playwright-core';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.js';
import { keysOn, useBrowser } from './browser.js';
import { note, party, row, stats } from './rows.js';

const tabs = useBrowser();
const IMAGES = join(process.cwd(), 'docs/images');

it('a recorded incident is found on the first screen, with no server', async () => {
  const server = await tabs.serve();
  const page = await tabs.open(`${server.url}/demo`);
  const alerts = page.locator('.alerts li');
  await alerts.nth(1).waitFor();
  const [deadlock, silent] = await alerts.allTextContents();
  expect(deadlock).toMatch(/Deadlock: OrderService\.pay of shop@a3 holds order:42 and waits for stock:9/);
  expect(silent).toMatch(/import-catalogue is held by jobs@b7, which has stopped answering\. 30 callers wait/);
  const first = page.locator('#rows tbody tr').first();
  const text = (await first.innerText()).replace(/\s+/g, ' ');
  expect(text).toMatch(/import-catalogue mutex ⚠ silent jobs@b7:1 ImportService\.run said \d+ s ago 41 min ⚑ old 30 for 3 min/);
  for (const found of [alerts.nth(0), alerts.nth(1), first]) expect(await isOnFirstScreen(page, await found.boundingBox())).toBe(true);
  expect(await page.locator('header').first().innerText()).toMatch(/7 of 8 processes answer, silent: jobs@b7:1/);
  expect(server.streams.size).toBe(0);
});

it('the lists below the table say the same: leaders, chains, processes, events', async () => {
  const page = await tabs.open(`${(await tabs.serve()).url}/demo`);
  await openLists(page);
  const lines = page.locator('details li');
  await lines.filter({ hasText: 'shop@a3:1 (OrderService.pay) holds order:42 and waits for stock:9, held by billing@f1:1' }).waitFor();
  await lines.filter({ hasText: 'billing@f1:1 (InvoiceService.book) holds stock:9 and waits for order:42, held by shop@a3:1' }).waitFor();
  await lines.filter({ hasText: /report-leader:\s+jobs@b6:1, for 3 d,\s+standbys: 2/ }).waitFor();
  await lines.filter({ hasText: /jobs@b7:1\s+⚠ silent\s+holds 1/ }).waitFor();
  await lines.filter({ hasText: /taken away.*by jane: deploy is stuck/ }).waitFor();
  await lines
    .filter({ hasText: /timed out\s+× 30, [\d:]+–[\d:]+ import-catalogue/ })
    .first()
    .waitFor();
  await lines.filter({ hasText: /CartService\.checkout: 15 min/ }).waitFor();
  expect(await page.locator('#page').innerText()).not.toMatch(/false|null|undefined|NaN/);
});

it('a key of another program is text, whatever it contains', async () => {
  const key = '<img src=x onerror="document.title = 1">${1}';
  const server = await tabs.serve({ rows: [row(key, { holder: party({ label: '<b id="label">', app: '"><script>' }) })] });
  server.rows.set('other', row('other'));
  const page = await tabs.open(`${server.url}?store=default&key=${encodeURIComponent(key)}`);
  await page.locator('#drawer h2').getByText(key, { exact: true }).waitFor();
  await page.locator('#drawer button', { hasText: 'Take it away' }).click();
  await page.locator('dialog b').getByText(key, { exact: true }).waitFor();
  server.say('notes', [note(key, { event: 'lost', label: key, process: key, by: key, reason: key })]);
  const processes = [{ name: key, isSilent: true, holds: 0, waits: 0 }];
  const alerts = [{ kind: 'silent', text: key } as const];
  server.say('stats', stats({ processes, alerts, costly: [{ label: key, waited: 1 }], latency: { [key]: 1 } }));
  await page.locator('.alerts li', { hasText: key }).waitFor();
  expect(await page.locator('img, #label, script:not(body > script)').count()).toBe(0);
  expect(await page.title()).toBe('Locks');
});

describe.each(['light', 'dark'] as const)('in %s colours', (colorScheme) => {
  it.each([1280, 390])('and at %d pixels axe finds nothing', async (width) => {
    const axe = createRequire(join(process.cwd(), 'test/package.json')).resolve('axe-core/axe.min.js');
    const page = await tabs.open(`${(await tabs.serve()).url}/demo`, { colorScheme, viewport: { width, height: 800 }, bypassCSP: true });
    await page.addScriptTag({ path: axe });
    await openLists(page);
    expect(await violations(page)).toEqual([]);
    await page.locator('.alerts button').first().click();
    await page.locator('#drawer dl').waitFor();
    expect(await violations(page)).toEqual([]);
    await page.locator('#drawer button', { hasText: 'Take it away' }).click();
    expect(await violations(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
  });

  it('it looks like the screenshot in the documentation', async () => {
    const page = await tabs.open(`${(await tabs.serve()).url}/demo`, { colorScheme, deviceScaleFactor: 2 });
    await page.locator('.alerts li').nth(1).waitFor();
    await eventually(async () => (await keysOn(page)).length > 30);
    const path = process.env.SCREENSHOTS ? join(IMAGES, `dashboard-${colorScheme}.png`) : undefined;
    expect((await page.screenshot(path ? { path } : {})).length).toBeGreaterThan(10_000);
  });
});

async function openLists(page: Page): Promise<void> {
  // Until it is here, what is below moves.
  await page.locator('.alerts li').nth(1).waitFor();
  for (const name of ['Leaders', 'Wait graph', 'Processes', 'Waiting time']) await page.locator('summary', { hasText: name }).click();
}

async function violations(page: Page): Promise<unknown[]> {
  // A sheet that is still half transparent has other colours.
  await page.evaluate('Promise.all(document.getAnimations().map((animation) => animation.finished))');
  return page.evaluate(
    `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, ...nodes.map(({ html, failureSummary }) => html + failureSummary)]))`,
  );
}

async function isOnFirstScreen(page: Page, box: { y: number; height: number } | null): Promise<boolean> {
  return box !== null && box.y + box.height <= (page.viewportSize()?.height ?? 0);
}
