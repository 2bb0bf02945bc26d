// The stream of messages: when it is open, and what the page shows when it is not.
import type { Page } from 'playwright-core';
import { eventually } from '../../support/eventually.js';
import { keysOn, useBrowser } from './browser.js';
import { note, party, row, stats } from './rows.js';

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
  // The clock that jumped is a silence of the server, too: the page opens the stream anew, and no sooner than the browser has done so is it there.
  await eventually(() => server.streams.size === 1);
  await connection(page, 'live');
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

it('a wire that is cut is noticed after five seconds: nothing grows older, the table is grey, and it connects again', async () => {
  let isSilent = false;
  const server = await tabs.serve({
    rows: [row('a', { holder: party({ since: Date.now() - 8_000 }) })],
    isSilent: () => isSilent,
    isHeldBack: () => isSilent,
  });
  const page = await tabs.open(server.url);
  await connection(page, 'live');
  isSilent = true;
  await connection(page, 'offline: no news for 5 s');
  await page.getByText(/as of \d\d:\d\d:\d\d/).waitFor();
  expect(await page.locator('main').getAttribute('class')).toBe('stale');
  const frozen = await page.locator('#rows tbody td').nth(4).innerText();
  await connection(page, 'no answer in 5 s');
  expect(await page.locator('#rows tbody td').nth(4).innerText()).toBe(frozen);
  expect(server.streams.size).toBe(0);
  isSilent = false;
  await connection(page, 'live');
  expect(await page.locator('main').getAttribute('class')).toBeNull();
});

it('a proxy that buffers is suspected when the stream says nothing', async () => {
  const page = await tabs.open((await tabs.serve({ isHeldBack: () => true })).url);
  await connection(page, 'no answer in 5 s. Does a proxy buffer the stream?');
});

it.each([
  [429, '10 pages of jane are open already: close one.'],
  [403, 'You have no right to do this.'],
])('a stream that is refused with %d says why', async (status, text) => {
  const page = await tabs.open((await tabs.serve({ refusal: () => ({ status, message: text }) })).url);
  await connection(page, text);
});

it('a table that is not whole says so, and the store can be asked for a key', async () => {
  const listing = { keys: 4_500, hasEvents: true };
  const server = await tabs.serve({ rows: [row('a')], find: () => ({ found: 1, isWhole: true }) });
  const page = await tabs.open(`${server.url}?q=order:42`);
  server.say('stats', stats({ listings: { default: { state: 'under way', ...listing } } }));
  await page.locator('.none', { hasText: 'default is being listed: 4500 keys so far.' }).waitFor();
  server.say('stats', stats({ listings: { default: { state: 'cut', ...listing } } }));
  await page.locator('.none', { hasText: 'default has more keys than the 4500 that are listed.' }).waitFor();
  await page.getByText('Ask the store for "order:42"').click();
  await page.getByText('The store has 1 in use.').waitFor();
  expect(server.finds).toEqual([['default', 'order:42']]);
  server.put(row('order:42'));
  await eventually(async () => (await keysOn(page)).join() === 'order:42');
});

it('losses and time-outs lead to the events, where equal ones are one line', async () => {
  const server = await tabs.serve({ rows: [row('a')] });
  const page = await tabs.open(server.url);
  server.say('notes', [note('hot', { count: 157 }), note('a', { event: 'forced', by: 'anna' })]);
  const lines = page.locator('#events li');
  await eventually(async () => (await lines.count()) === 2);
  await page.locator('.numbers button', { hasText: 'Timeouts' }).click();
  await eventually(async () => (await lines.allInnerTexts()).length === 1 && (await lines.innerText()).includes('timed out × 157'));
  expect(await page.evaluate('document.activeElement.id')).toBe('events');
});

it('advice of the doctor is one line that folds, beside what is wrong now', async () => {
  const server = await tabs.serve();
  const page = await tabs.open(server.url);
  const alerts = [
    { kind: 'doctor', text: 'no append-only file' },
    { kind: 'deadlock', text: 'Deadlock: a holds b' },
  ] as const;
  server.say('stats', stats({ alerts }));
  await page.getByText('Advice of the doctor: 1').waitFor();
  expect(await page.locator('.alerts li').count()).toBe(1);
  expect(await page.getByText('no append-only file').isVisible()).toBe(false);
});

it('neither the first alarm nor the advice of the doctor moves the table, so no click misses its row', async () => {
  const server = await tabs.serve({ rows: [row('a'), row('b')] });
  const page = await tabs.open(server.url);
  const latency = { default: 1 };
  server.say('stats', stats({ latency }));
  await page.getByText('No alarm.').waitFor();
  const button = page.locator('#rows tbody button', { hasText: 'b' });
  const { x, y } = (await button.boundingBox())!;
  await page.mouse.move(x + 2, y + 2);
  await page.mouse.down();
  const alerts = [
    { kind: 'silent', text: 'a@1 has stopped answering' },
    { kind: 'doctor', text: 'no append-only file' },
  ] as const;
  server.say('stats', stats({ latency, alerts }));
  await page.locator('.alerts', { hasText: 'a@1' }).waitFor();
  await page.getByText('Advice of the doctor: 1').waitFor();
  await page.mouse.up();
  await page.locator('#drawer h2', { hasText: 'b' }).waitFor();
});

it('a page of another version says so', async () => {
  const page = await tabs.open((await tabs.serve({ hello: { version: 1 as never } })).url);
  await page.getByText('The server has another version by now.').waitFor();
});
