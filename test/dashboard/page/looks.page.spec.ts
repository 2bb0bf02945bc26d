// What the page looks like. With SCREENSHOTS=1 the pictures of the documentation are taken again.
import type { Page } from 'playwright-core';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.js';
import { keysOn, useBrowser } from './browser.js';
import { note, party, row } from './rows.js';

const tabs = useBrowser();
const IMAGES = join(process.cwd(), 'docs/images');

it('a recorded incident is found on the first screen, with no server', async () => {
  const server = await tabs.serve();
  const page = await tabs.open(`${server.url}/demo`);
  const alarms = page.locator('.alarms li');
  await alarms.nth(1).waitFor();
  const [deadlock, silent] = await alarms.allTextContents();
  expect(deadlock).toMatch(/Deadlock: OrderService\.pay of shop@a3:1 holds order:42 and waits for stock:9/);
  expect(silent).toMatch(
    /import-catalogue: 30 wait, the first for 3 min; ImportService\.run of jobs@b7:1 holds it for 41 min and does not answer/,
  );
  const first = page.locator('#rows tbody tr').first();
  const text = (await first.innerText()).replace(/\s+/g, ' ');
  expect(text).toMatch(/import-catalogue mutex ⚠ silent jobs@b7:1 ImportService\.run said \d+ s ago 41 min ⚑ old [\d.]+ m?s 30 for 3 min/);
  for (const found of [alarms.nth(0), alarms.nth(1), first]) {
    const { y, height } = (await found.boundingBox())!;
    expect(y + height).toBeLessThanOrEqual(page.viewportSize()!.height);
  }
  expect(await page.locator('header').first().innerText()).toMatch(/7 of 8 processes answer, silent: jobs@b7:1/);
  expect(server.searches).toEqual([]);
  expect(await page.title()).toBe('(3) Locks');
});

it('a key of another program is text, whatever it contains', async () => {
  const key = '<img src=x onerror="document.title = 1">${1}';
  const server = await tabs.serve({ rows: [row(key, { holder: party({ label: '<b id="label">', app: '"><script>' }) })] });
  const page = await tabs.open(`${server.url}?store=default&key=${encodeURIComponent(key)}`);
  await page.locator('#drawer h2').getByText(key, { exact: true }).waitFor();
  await page.locator('#drawer button', { hasText: 'Take it away' }).click();
  await page.locator('dialog b').getByText(key, { exact: true }).waitFor();
  server.say({
    notes: [note(key, { event: 'lost', label: key, process: key, by: key, reason: key })],
    processes: { known: 1, silent: [key] },
    alarms: [{ kind: 'store', text: key }],
    advice: [key],
  });
  await page.locator('.alarms li', { hasText: key }).waitFor();
  expect(await page.locator('img, #label, script:not(body > script)').count()).toBe(0);
  expect(await page.title()).toBe('(1) Locks');
});

describe.each(['light', 'dark'] as const)('in %s colours', (colorScheme) => {
  it.each([1440, 390])('and at %d pixels axe finds nothing', async (width) => {
    const axe = createRequire(join(process.cwd(), 'test/package.json')).resolve('axe-core/axe.min.js');
    const page = await tabs.open(`${(await tabs.serve()).url}/demo`, { colorScheme, viewport: { width, height: 800 }, bypassCSP: true });
    await page.addScriptTag({ path: axe });
    await page.locator('.alarms li').nth(1).waitFor();
    if (width === 390) await page.evaluate(`document.documentElement.style.fontSize = '32px'`);
    expect(await violations(page)).toEqual([]);
    await page.locator('.alarms button').first().click();
    await page.locator('#drawer dl').waitFor();
    expect(await violations(page)).toEqual([]);
    // What an open key covers is out of reach, and it covers neither the connection nor the alarms.
    expect(await page.locator('#all[inert]').count()).toBe(width === 390 ? 1 : 0);
    const [above, below] = [await page.locator('.alarms').boundingBox(), await page.locator('#drawer').boundingBox()];
    expect(below!.y).toBeGreaterThanOrEqual(above!.y + above!.height);
    await page.locator('#drawer button', { hasText: 'Take it away' }).click();
    expect(await violations(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
  });

  it('it looks like the screenshot in the documentation', async () => {
    const page = await tabs.open(`${(await tabs.serve()).url}/demo`, { colorScheme });
    await page.locator('.alarms li').nth(1).waitFor();
    await eventually(async () => (await keysOn(page)).length > 30);
    const tools = await page.context().newCDPSession(page);
    const clip = { x: 0, y: 0, ...page.viewportSize()!, scale: 2 };
    const { data } = await tools.send('Page.captureScreenshot', { format: 'webp', quality: 90, clip });
    const picture = Buffer.from(data, 'base64');
    expect(picture.length).toBeGreaterThan(10_000);
    if (process.env.SCREENSHOTS) writeFileSync(join(IMAGES, `dashboard-${colorScheme}.webp`), picture);
  });
});

async function violations(page: Page): Promise<unknown[]> {
  // A sheet that is still half transparent has other colours.
  await page.evaluate('Promise.all(document.getAnimations().map((animation) => animation.finished))');
  return page.evaluate(
    `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, ...nodes.map(({ html, failureSummary }) => html + failureSummary)]))`,
  );
}
