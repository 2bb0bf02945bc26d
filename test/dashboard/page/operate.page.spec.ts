// What an operator does on the page, mostly by keyboard.
import type { Page } from 'playwright-core';
import { eventually } from '../../support/eventually.js';
import { focused, keysOn, useBrowser } from './browser.js';
import { party, row } from './rows.js';

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

it('a key is found, opened, closed and released with the keyboard alone', async () => {
  const server = await tabs.serve({ rows: [...many(80), row('order:42')] });
  const page = await tabs.open(server.url);
  await press(page, '/');
  await page.keyboard.type('order:4');
  await eventually(async () => (await keysOn(page)).join() === 'order:42');
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
  await press(page, 'Enter');
  await dialog.locator('[role=status]', { hasText: 'taken by force' }).waitFor();
  const keys = [{ key: 'order:42', owner: 'shop@a1:1:uuid', token: 7 }];
  expect(server.releases).toEqual([{ store: 'default', keys, reason: 'hi there', grace: 5_000, keepFor: 0 }]);
  expect(await focused(page)).toBe('Close');
  await press(page, 'Enter');
  await dialog.waitFor({ state: 'hidden' });
  expect(server.forged).toEqual([]);
});

it('arrows go through all keys, of which a few are in the page', async () => {
  const page = await tabs.open((await tabs.serve({ rows: many(1_000) })).url);
  await page.locator('#rows tbody tr').nth(59).waitFor();
  await press(page, '/', 'ArrowDown');
  for (const [key, expected] of [
    ['End', 'key-999'],
    ['ArrowUp', 'key-998'],
    ['PageUp', 'key-988'],
    ['Home', 'key-000'],
    ['ArrowUp', 'key-000'],
    ['ArrowDown', 'key-001'],
  ] as const) {
    await press(page, key);
    expect(await focused(page)).toBe(expected);
    expect(await page.evaluate('document.activeElement.closest("tr").getAttribute("aria-rowindex")')).toBe(
      String(Number(expected.slice(4)) + 2),
    );
    expect(await page.locator('#rows tbody tr').count()).toBe(60);
  }
  expect(await page.locator('#rows table').getAttribute('aria-rowcount')).toBe('1001');
  await page.evaluate('document.getElementById("rows").scrollTo(0, 20_000)');
  await page.getByRole('button', { name: 'key-600' }).waitFor();
  expect(await page.evaluate('document.getElementById("rows").scrollHeight')).toBe(1_001 * 34);
  await press(page, 'ArrowDown');
  expect(await focused(page)).toBe('key-002');
});

it('the focus stays on its key, and the order as it is, while the rows change', async () => {
  const server = await tabs.serve({ rows: many(30) });
  const page = await tabs.open(server.url);
  await page.locator('#rows tbody tr').nth(29).waitFor();
  await press(page, '/', 'ArrowDown', 'ArrowDown', 'ArrowDown');
  const before = await keysOn(page);
  expect(await focused(page)).toBe('key-002');
  server.put(row('key-020', { waiters: 9 }), row('new', { waiters: 20 }));
  server.say('delta', {
    put: [],
    drop: [
      { store: 'default', key: 'key-002' },
      { store: 'default', key: 'key-003' },
    ],
  });
  await eventually(async () => (await keysOn(page)).at(-1) === 'new');
  expect(await keysOn(page)).toEqual([...before, 'new']);
  expect(await focused(page)).toBe('key-002');
  expect(await page.locator('#rows tbody tr').nth(2).innerText()).toContain('free');
  await press(page, '/');
  await eventually(async () => (await keysOn(page)).slice(0, 2).join() === 'new,key-020');
  expect(await keysOn(page)).not.toContain('key-002');
});

it('a click on a head of the table sorts by it, and another one the other way round', async () => {
  const server = await tabs.serve({
    rows: [row('b', { holder: party({ since: age(10) }) }), row('a', { holder: party({ since: age(5) }) })],
  });
  const page = await tabs.open(server.url);
  await eventually(async () => (await keysOn(page)).join() === 'b,a');
  await page.locator('th', { hasText: 'Key' }).click();
  expect(await keysOn(page)).toEqual(['a', 'b']);
  await page.locator('th', { hasText: 'Key' }).click();
  expect(await keysOn(page)).toEqual(['b', 'a']);
  expect(await page.locator('th[aria-sort]').getAttribute('aria-sort')).toBe('descending');
  expect(page.url()).toContain('?sort=key&reversed=1');
});

it('who may not release sees why, and finds no button', async () => {
  const server = await tabs.serve({ rows: [row('order:42')], hello: { me: { by: 'jane', mayRelease: false } } });
  const page = await tabs.open(`${server.url}?store=default&key=order:42`);
  await drawer(page).getByText('jane may look, but has no right to release.').waitFor();
  for (const button of [takeAway(page), page.getByText('Release all shown…'), page.getByText('Hold a key…')])
    expect(await button.isDisabled()).toBe(true);
});

it('of two operators the second one reads that the owner has changed, and to which', async () => {
  let owner = 'shop@a1:1:uuid';
  const server = await tabs.serve({
    rows: [row('order:42')],
    release({ keys: [first] }) {
      const isIt = first?.owner === owner;
      const body = [{ key: 'order:42', outcome: isIt ? ('gave back' as const) : ('changed' as const), holder: owner }];
      owner = 'billing@f1:1:other';
      return { status: 200, body };
    },
  });
  const [first, second] = [
    await tabs.open(`${server.url}?store=default&key=order:42`),
    await tabs.open(`${server.url}?store=default&key=order:42`),
  ];
  for (const page of [first, second]) await takeAway(page).click();
  for (const page of [first, second]) {
    await page.keyboard.type('stuck');
    await press(page, 'Enter');
    await page.locator('dialog [role=status]').waitFor();
  }
  expect(await first.locator('dialog').innerText()).toContain('order:42: released');
  expect(await second.locator('dialog').innerText()).toContain('order:42: changed: nothing was done, as billing@f1:1:other has it now');
});

it.each([
  [403, 'You have no right to do this.'],
  [422, 'The server does not accept these values. The reason is too short.'],
  [429, 'Too many requests: try again in a second.'],
])('a release that is refused with %d says so, and keeps the reason', async (status, text) => {
  const message = status === 422 ? 'The reason is too short.' : '';
  const page = await tabs.open(
    `${(await tabs.serve({ rows: [row('a')], release: () => ({ status, body: { message } }) })).url}?store=default&key=a`,
  );
  await takeAway(page).click();
  await page.keyboard.type('stuck');
  await press(page, 'Enter');
  await page.locator('dialog [role=alert]').getByText(text).waitFor();
  expect(await page.locator('dialog input[name=reason]').inputValue()).toBe('stuck');
  expect(await page.locator('dialog .act').isEnabled()).toBe(true);
});

it('several keys are listed with owner and token before the reason is asked for', async () => {
  const server = await tabs.serve({
    rows: [...many(120), row('order:1'), row('order:2', { holder: party({ owner: 'x@y:1:z', token: null }) })],
  });
  const page = await tabs.open(server.url);
  await page.getByText('At most 100 keys at once: filter first.').waitFor();
  expect(await page.getByText('Release all shown…').isDisabled()).toBe(true);
  await page.locator('#search').fill('order');
  await page.getByText('Release all shown…').click();
  const dialog = page.locator('dialog');
  await dialog.getByText('owner x@y:1:z, token unknown').waitFor();
  expect(await dialog.locator('input').count()).toBe(0);
  await press(page, 'Enter');
  await dialog.getByText('loses it now').click();
  await dialog.locator('select').selectOption('1 min');
  await dialog.locator('input[name=reason]').fill('host is gone');
  await press(page, 'Enter');
  await dialog.getByText('Outcome').waitFor();
  const keys = [
    { key: 'order:1', owner: 'shop@a1:1:uuid', token: 7 },
    { key: 'order:2', owner: 'x@y:1:z', token: null },
  ];
  expect(server.releases).toEqual([{ store: 'default', keys, reason: 'host is gone', grace: 0, keepFor: 60_000 }]);
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

it('the drawer shows the whole queue, the chain, and the owner id with its trace', async () => {
  const holder = party({ owner: 'shop@a1:1:uuid;0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331' });
  const { token: _token, ...caller } = party({ host: 'f1', app: 'billing', since: age(90) });
  const chain = ['order:42', 'stock:9'].map((key) => ({ store: 'default', key }));
  const server = await tabs.serve({
    rows: [row('order:42', { holder, waiters: 1 })],
    key: () => ({ chain, waiters: [{ ...caller, patienceLeft: 30_000, holding: ['stock:9'] }], waiterCount: 1 }),
  });
  const page = await tabs.open(`${server.url}/?store=default&key=order:42`);
  await drawer(page)
    .getByText(/billing@f1:1\s+StockService\.reduce,\s+for 1 min, gives up in (30\.0|2\d\.\d) s, holds stock:9/)
    .waitFor();
  await drawer(page).getByText('shop@a1:1:uuid;0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331').waitFor();
  await drawer(page).getByText('Chain: order:42 → stock:9').waitFor();
  await drawer(page).locator('p button', { hasText: 'stock:9' }).click();
  await page.locator('#drawer h2', { hasText: 'stock:9' }).waitFor();
  expect(page.url()).toBe(`${server.url}/?store=default&key=stock%3A9`);
});

it('a key whose question gets no answer is asked for again', async () => {
  let asked = 0;
  const server = await tabs.serve({ rows: [row('order:1')], isDeaf: () => asked++ === 0 });
  const page = await tabs.open(server.url);
  await page.locator('#rows tbody button', { hasText: 'order:1' }).click();
  await page.locator('#drawer').getByText('Holders: 1').waitFor();
  expect(asked).toBe(2);
});

it('a key is copied as text, for a chat', async () => {
  const server = await tabs.serve({ rows: [row('order:42')] });
  const page = await tabs.open(`${server.url}?store=default&key=order:42`, { permissions: ['clipboard-read', 'clipboard-write'] });
  await drawer(page).getByText('Copy as text').click();
  await drawer(page).getByText('Copied.').waitFor();
  const text = await page.evaluate<string>('navigator.clipboard.readText()');
  expect(text).toMatch(
    /^key order:42 \(store default\)\nheld by shop@a1:1:uuid, StockService\.reduce, since .*, token 7\nwaiters: 0\nhttp/,
  );
});

it('a key that is held by hand says its reason and its end, and a name that lies is written out', async () => {
  const by = party({ app: 'anna:-incident-812', label: null, until: new Date(2030, 0, 1, 18, 24).getTime() });
  const server = await tabs.serve({ rows: [row('deploy', { holder: by }), row('order\u202e24')] });
  const page = await tabs.open(server.url);
  await page.getByText('held by hand: incident 812, until 18:24').waitFor();
  await page.locator('#rows button', { hasText: 'order⟨U+202E⟩24' }).waitFor();
});

it('on a phone the rows are sorted by a choice', async () => {
  const rows = [row('b', { holder: party({ since: age(10) }) }), row('a', { holder: party({ since: age(5) }) })];
  const page = await tabs.open((await tabs.serve({ rows })).url, { viewport: { width: 390, height: 800 } });
  await eventually(async () => (await keysOn(page)).join() === 'b,a');
  await page.locator('label', { hasText: 'Sort' }).locator('select').selectOption('key');
  expect(await keysOn(page)).toEqual(['a', 'b']);
});
