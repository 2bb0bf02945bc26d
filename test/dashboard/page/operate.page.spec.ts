// What an operator does on the page, mostly by keyboard.
import type { Page } from 'playwright-core';
import { eventually } from '../../support/eventually.js';
import { focused, keysOn, useBrowser } from './browser.js';
import { note, party, row } from './rows.js';

const tabs = useBrowser();
const age = (seconds: number): number => Date.now() - seconds * 1_000;
const many = (count: number): ReturnType<typeof row>[] =>
  Array.from({ length: count }, (_, index) =>
    row(`key-${String(index).padStart(3, '0')}`, { holder: party({ since: age(1_000 - index) }) }),
  );
const press = async (page: Page, ...keys: string[]): Promise<void> => {
  for (const key of keys) await page.keyboard.press(key);
};
const drawer = (page: Page): ReturnType<Page['locator']> => page.locator('#drawer');
const takeAway = (page: Page): ReturnType<Page['locator']> => drawer(page).locator('button', { hasText: 'Take it away' });
const shows = (page: Page, count: number): Promise<void> => page.locator('#rows tbody tr').nth(count - 1).waitFor(); // prettier-ignore

it('a key is found, opened, closed and released with the keyboard alone', async () => {
  const server = await tabs.serve({ rows: [...many(80), row('order:42')] });
  const page = await tabs.open(server.url);
  await shows(page, 81);
  await press(page, '/');
  await page.keyboard.type('order:4');
  await eventually(async () => (await keysOn(page)).join() === 'order:42');
  expect(server.searches.at(-1)).toBe('order:4');
  await press(page, 'ArrowDown', 'Enter');
  expect(await focused(page)).toBe('order:42');
  await drawer(page).locator('dl').waitFor();
  expect(page.url()).toBe(`${server.url}?q=order%3A4&store=default&key=order%3A42`);
  await press(page, 'Escape');
  await drawer(page).waitFor({ state: 'detached' });
  expect(await page.evaluate('document.activeElement.closest("tr").innerText')).toContain('order:42');
  await press(page, 'Enter');
  await takeAway(page).waitFor();
  await press(page, 'Tab', 'Tab');
  expect(await focused(page)).toBe('Take it away…');
  await press(page, 'Enter');
  const dialog = page.locator('dialog');
  await dialog.getByText('owner shop@a1:1:uuid, token 7').waitFor();
  expect(await page.evaluate('document.activeElement.name')).toBe('reason');
  await page.keyboard.type('hi');
  await press(page, 'Enter');
  expect(server.releases).toEqual([]); // three characters at least
  await page.keyboard.type(' there');
  await dialog.locator('select').selectOption('1 min');
  await dialog.locator('input[name=reason]').press('Enter');
  await dialog.locator('[role=status]', { hasText: 'taken by force' }).waitFor();
  const order = { store: 'default', key: 'order:42', owner: 'shop@a1:1:uuid', token: 7 };
  expect(server.releases).toEqual([{ ...order, reason: 'hi there', grace: 5_000, keepFor: 60_000 }]);
  expect(await focused(page)).toBe('Close');
  await press(page, 'Enter');
  await dialog.waitFor({ state: 'hidden' });
  expect(server.forged).toEqual([]);
});

it('arrows go through the rows, which stay as they are while one has the focus', async () => {
  const server = await tabs.serve({ rows: many(30) });
  const page = await tabs.open(server.url);
  await shows(page, 30);
  await press(page, '/', 'ArrowDown');
  for (const [key, expected] of [
    ['End', 'key-029'],
    ['ArrowUp', 'key-028'],
    ['PageUp', 'key-018'],
    ['Home', 'key-000'],
    ['ArrowUp', 'key-000'],
    ['ArrowDown', 'key-001'],
  ] as const) {
    await press(page, key);
    expect(await focused(page)).toBe(expected);
  }
  const before = await keysOn(page);
  server.rows.delete('key-001');
  server.rows.set('new', row('new', { waiters: 20 }));
  server.say({ alarms: [{ kind: 'store', text: 'the alarms are drawn' }] });
  await page.getByText('the alarms are drawn', { exact: false }).first().waitFor();
  expect(await page.title()).toBe('(1) Locks');
  expect(await keysOn(page)).toEqual(before);
  expect(await focused(page)).toBe('key-001');
  await press(page, '/');
  await eventually(async () => (await keysOn(page))[0] === 'new');
  expect(await keysOn(page)).not.toContain('key-001');
});

it('nothing moves under a button that is pressed', async () => {
  const server = await tabs.serve({ rows: many(3) });
  const page = await tabs.open(server.url);
  await shows(page, 3);
  const box = (await page.locator('#rows tbody tr').first().boundingBox())!;
  await page.mouse.move(box.x + 5, box.y + 5);
  await page.mouse.down();
  const asked = server.searches.length;
  server.rows.set('new', row('new', { waiters: 20 }));
  await eventually(() => server.searches.length >= asked + 2);
  expect((await keysOn(page))[0]).toBe('key-000');
  await page.mouse.up();
  await page.locator('#opened', { hasText: 'key-000' }).waitFor();
  await eventually(async () => (await keysOn(page))[0] === 'new');
});

it('a click on a head of the table sorts by it, and another one the other way round', async () => {
  const rows = [row('b', { holder: party({ since: age(10) }) }), row('a', { holder: party({ since: age(5) }) })];
  const page = await tabs.open((await tabs.serve({ rows })).url);
  await eventually(async () => (await keysOn(page)).join() === 'b,a');
  await page.locator('th', { hasText: 'Key' }).click();
  expect(await keysOn(page)).toEqual(['a', 'b']);
  await page.locator('th', { hasText: 'Key' }).click();
  expect(await keysOn(page)).toEqual(['b', 'a']);
  expect(await page.locator('th[aria-sort]').getAttribute('aria-sort')).toBe('descending');
  expect(page.url()).toContain('?sort=key&reversed=1');
  await page.setViewportSize({ width: 390, height: 800 });
  await page.locator('label', { hasText: 'Sort' }).locator('select').selectOption('age');
  expect(await keysOn(page)).toEqual(['a', 'b']);
});

it('who may not release sees why, and finds no button', async () => {
  const server = await tabs.serve({ rows: [row('order:42')], state: { me: { by: 'jane', mayRelease: false } } });
  const page = await tabs.open(`${server.url}?store=default&key=order:42`);
  await drawer(page).getByText('jane may look, but has no right to release.').waitFor();
  for (const button of [takeAway(page), page.getByText('Hold a key…')]) expect(await button.isDisabled()).toBe(true);
});

it('of two operators the second one reads that the owner has changed, and to which', async () => {
  let owner = 'shop@a1:1:uuid';
  const server = await tabs.serve({
    rows: [row('order:42')],
    release(order) {
      const outcome = order.owner === owner ? 'gave back' : 'changed';
      const body = { outcome, holder: owner } as const;
      owner = 'billing@f1:1:other';
      return { status: 200, body };
    },
  });
  const pages = [1, 2].map(() => tabs.open(`${server.url}?store=default&key=order:42`));
  const [first, second] = (await Promise.all(pages)) as [Page, Page];
  for (const page of [first, second]) await takeAway(page).click();
  for (const page of [first, second]) {
    await page.keyboard.type('stuck');
    await press(page, 'Enter');
    await page.locator('dialog [role=status]').waitFor();
  }
  expect(await first.locator('dialog').innerText()).toContain('order:42: released');
  expect(await second.locator('dialog').innerText()).toContain('order:42: changed: nothing was done, as billing@f1:1:other has it now');
});

it('a release that is refused says so, and keeps the reason', async () => {
  const refusals: [number, string, string][] = [
    [403, '', 'You have no right to do this.'],
    [422, 'The reason is too short.', 'The server does not accept these values. The reason is too short.'],
    [429, '', 'Too many requests: try again in a second.'],
  ];
  let next = 0;
  const release = () => ({ status: refusals[next]![0], body: { message: refusals[next]![1] } });
  const page = await tabs.open(`${(await tabs.serve({ rows: [row('a')], release })).url}?store=default&key=a`);
  await takeAway(page).click();
  await page.keyboard.type('stuck');
  for (const [index, [, , text]] of refusals.entries()) {
    next = index;
    await page.locator('dialog .act').click();
    await page.locator('dialog [role=alert]').getByText(text).waitFor();
    expect(await page.locator('dialog input[name=reason]').inputValue()).toBe('stuck');
  }
});

it('a key is held by hand, for a time and a reason, if it is free', async () => {
  const server = await tabs.serve({ rows: [row('deploy')] });
  const page = await tabs.open(server.url);
  const hold = async (key: string): Promise<void> => {
    await page.getByText('Hold a key…').click();
    await page.keyboard.type(key);
    await page.locator('dialog input[name=reason]').fill('incident 812');
    await page.locator('dialog input[name=for]').fill('1 h');
    await page.locator('dialog .act').click();
  };
  await shows(page, 1);
  await hold('import');
  await page.getByText('import is held.').waitFor();
  await press(page, 'Enter');
  await hold('deploy');
  await page.getByText('deploy is not free, so nothing was done.').waitFor();
  const order = { store: 'default', for: 3_600_000, reason: 'incident 812' };
  expect(server.holds).toEqual([
    { ...order, key: 'import' },
    { ...order, key: 'deploy' },
  ]);
});

it('the drawer shows the queue, where equal callers are one line, the chain, and the owner id; and all of it as text', async () => {
  const holder = party({ owner: 'shop@a1:1:uuid;0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331' });
  const { owner, label, ...of } = party({ host: 'f1', app: 'billing' });
  const chain = ['order:42', 'stock:9'].map((key) => ({ store: 'default', key }));
  const waiter = { ...of, owner, label, since: age(90), patienceLeft: 30_000, holding: ['stock:9'], count: 25 };
  const server = await tabs.serve({
    rows: [row('order:42', { holder, waiters: 25 })],
    key: () => ({
      chain,
      waiters: [waiter],
      waiterCount: 25,
      notes: [note('order:42', { event: 'lost', at: Date.now(), reason: 'too late' })],
    }),
  });
  const page = await tabs.open(`${server.url}/?store=default&key=order:42`, { permissions: ['clipboard-read', 'clipboard-write'] });
  await drawer(page).getByText(/billing@f1:1\s+StockService\.reduce × 25, the first\s+for 1 min, gives up in 30\.0 s, holds stock:9/).waitFor(); // prettier-ignore
  for (const text of [holder.owner, 'Chain: order:42 → stock:9', 'Waiters: 25', 'too late']) await drawer(page).getByText(text).waitFor();
  await drawer(page).getByText('Copy as text').click();
  await drawer(page).getByText('Copied.').waitFor();
  const copied = /^key order:42 \(store default\)\nheld by shop@a1:1:uuid.*, StockService\.reduce, since .*, token 7\nwaiters: 25, the first for 1 min: billing@f1:1, StockService\.reduce\nhttp/; // prettier-ignore
  expect(await page.evaluate<string>('navigator.clipboard.readText()')).toMatch(copied);
  await drawer(page).locator('p button', { hasText: 'stock:9' }).click();
  await page.locator('#drawer h2', { hasText: 'stock:9' }).waitFor();
  expect(page.url()).toBe(`${server.url}/?store=default&key=stock%3A9`);
});

it('a server without an answer is offline, and no row outlives its lease', async () => {
  let isDeaf = false;
  const endsAt = Date.now() + 4_000;
  const rows = [row('import', { holder: party({ since: age(60), endsAt }) })];
  const server = await tabs.serve({ rows, isDeaf: () => isDeaf });
  const page = await tabs.open(server.url);
  const connection = page.locator('#connection');
  await connection.getByText(/● live as of \d\d:\d\d:\d\d/).waitFor();
  isDeaf = true;
  await connection.getByText(/○ offline: The server does not answer\. as of \d\d:\d\d:\d\d/).waitFor();
  await page.locator('#rows td', { hasText: /ended \d\d:\d\d:\d\d, not confirmed/ }).waitFor();
  expect(await page.locator('#all').getAttribute('class')).toBe('stale');
  await page.getByText('processes unknown').waitFor();
  isDeaf = false;
  await connection.getByText('live').waitFor();
  // The server answers, but a store does not.
  const [store] = [{ name: 'default', at: Date.now() - 15_000, isAway: true, latency: null, keys: 1, isWhole: true }];
  server.say({ stores: [store], alarms: [{ kind: 'outage', text: 'default does not answer', since: age(15) }] });
  await page.getByText(/default does not answer Since \d\d:\d\d:\d\d\./).first().waitFor(); // prettier-ignore
  expect(await page.locator('#rows tbody tr').getAttribute('class')).toBe('stale');
  await page.getByText(/default ⚠ does not answer, as of \d\d:\d\d:\d\d/).waitFor();
});

it('says "Nothing is held." where nothing is, and of a kept key until when', async () => {
  const server = await tabs.serve();
  const page = await tabs.open(server.url);
  await page.getByText('Nothing is held.').waitFor();
  const kept = party({ phase: 'kept', since: age(900), endsAt: Date.now() + 3_600_000, label: 'Jobs.tick' });
  server.rows.set('tick', row('tick', { holder: kept }));
  await page.locator('#rows td', { hasText: /kept until \d\d:\d\d/ }).waitFor();
  expect(await page.locator('#rows tbody').innerText()).not.toContain('old');
});
