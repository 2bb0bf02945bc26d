// The stream of messages: when it is open, and what the page shows when it is not.
import type { Page } from 'playwright-core';
import { eventually } from '../../support/eventually.js';
import { keysOn, useBrowser } from './browser.js';
import { row, stats } from './rows.js';

const tabs = useBrowser();
const connection = (page: Page, text: string): Promise<void> => page.locator('#connection', { hasText: text }).waitFor();
const look = (page: Page, state: 'hidden' | 'visible'): Promise<unknown> =>
  page.evaluate(
    `Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true }); document.dispatchEvent(new Event('visibilitychange'))`,
  );

it('a tab that is hidden for a minute closes its stream, and opens it when it is seen again', async () => {
  const server = await tabs.serve({ rows: [row('a')] });
  const page = await tabs.open(server.url, { prepare: (tab) => tab.clock.install() });
  await connection(page, 'live');
  await look(page, 'hidden');
  await page.clock.fastForward(50_000);
  await look(page, 'visible');
  await page.clock.fastForward(50_000);
  await look(page, 'hidden');
  expect(server.streams.size).toBe(1);
  await page.clock.fastForward(61_000);
  await eventually(() => server.streams.size === 0);
  await connection(page, 'paused');
  server.rows.set('b', row('b'));
  await look(page, 'visible');
  await eventually(async () => (await keysOn(page)).join() === 'a,b');
  expect(server.streams.size).toBe(1);
});

it('a stream that breaks comes back by itself, with all rows', async () => {
  const server = await tabs.serve({ rows: [row('a'), row('b')] });
  const page = await tabs.open(server.url);
  await eventually(async () => (await keysOn(page)).join() === 'a,b');
  server.rows.delete('a');
  for (const stream of server.streams) stream.destroy();
  await connection(page, 'offline');
  await eventually(async () => (await keysOn(page)).join() === 'b');
  await connection(page, 'live');
});

it('a stream that has ended says why, and is tried again later', async () => {
  const server = await tabs.serve();
  const page = await tabs.open(server.url, { prepare: (tab) => tab.clock.install() });
  await connection(page, 'live');
  server.say('end', { reason: 'the app stops' });
  await connection(page, 'offline: the app stops');
  await eventually(() => server.streams.size === 0);
  await page.clock.fastForward(16_000);
  await connection(page, 'live');
});

it('an alert is spoken once, while its line shows the time that is left', async () => {
  const server = await tabs.serve({ rows: [row('a')] });
  const page = await tabs.open(server.url);
  await connection(page, 'live');
  await page.evaluate(`new MutationObserver((changes) => (globalThis.spoken = (globalThis.spoken ?? 0) + changes.length))
    .observe(document.querySelector('[role=alert]'), { subtree: true, childList: true, characterData: true })`);
  const say = (text: string): void =>
    server.say('stats', stats({ alerts: [{ kind: 'deadlock', text, row: { store: 'default', key: 'a' } }] }));
  say('Deadlock, ends in 23 s.');
  await page.locator('[role=alert]', { hasText: '23 s' }).waitFor({ state: 'attached' });
  const spoken = await page.evaluate('globalThis.spoken');
  say('Deadlock, ends in 22 s.');
  await page.locator('.alerts', { hasText: '22 s' }).waitFor();
  expect(await page.evaluate('globalThis.spoken')).toBe(spoken);
});

it('the choice of a store shows its rows alone, over the same stream', async () => {
  const server = await tabs.serve({ hello: { stores: ['default', 'other'] }, rows: [row('a'), row('b', { store: 'other' })] });
  const page = await tabs.open(server.url);
  await eventually(async () => (await keysOn(page)).join() === 'a,b');
  const [stream] = server.streams;
  await page.locator('header select').selectOption('other');
  await eventually(async () => (await keysOn(page)).join() === 'b');
  expect([...server.streams]).toEqual([stream]);
  expect(page.url()).toBe(`${server.url}?in=other`);
});

it('ages are those of the clock of the server', async () => {
  const now = Date.now() + 3_600_000;
  const server = await tabs.serve({ hello: { now }, rows: [row('a', { holder: { ...row('a').holder!, since: now - 90_000 } })] });
  const page = await tabs.open(server.url);
  await page.locator('#rows td', { hasText: /^\s*1 min\s*$/ }).waitFor();
});
