import { eventually } from '../../support/eventually.js';
import { useBrowser } from './browser.js';
import { party, row } from './rows.js';

const KEYS = 10_000;
const CHANGES = 2_000;
const MESSAGES = 30;
const tabs = useBrowser();

interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  args: { name?: string };
  /** Micromessages of the processor: what other programs use meanwhile does not count. */
  tdur?: number;
}

it('ten thousand keys with two thousand changes a second cost no task of 50 ms, and 80 MB at most', async () => {
  const rowOf = (index: number, waiters: number): ReturnType<typeof row> =>
    row(`shop-stock-${index}`, {
      waiters,
      holder: party({ owner: `shop@a1:1:${index}`, since: Date.now() - index, token: index + waiters }),
    });
  const server = await tabs.serve({ rows: Array.from({ length: KEYS }, (_, index) => rowOf(index, index % 7)) });
  const page = await tabs.open(server.url);
  await page.getByText(`${KEYS} of ${KEYS} keys`).waitFor();
  await tabs.browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline'] });
  for (let message = 1; message <= MESSAGES; message++) {
    const changed = Array.from({ length: CHANGES }, (_, index) => rowOf((message * 3_331 + index * 5) % KEYS, index % 31));
    const last = rowOf(0, 100 + message);
    server.put(...changed, last);
    // From here on the order is frozen, which is other work.
    if (message === MESSAGES / 2) for (const key of ['/', 'ArrowDown']) await page.keyboard.press(key);
    // The next message comes when this one is on the screen, so they never add up to one task.
    await page
      .locator('#rows tbody tr')
      .first()
      .getByText(String(100 + message), { exact: true })
      .waitFor();
  }
  const { traceEvents } = JSON.parse(String(await tabs.browser.stopTracing())) as { traceEvents: TraceEvent[] };
  const threadOf = ({ pid, tid }: TraceEvent): string => `${pid}:${tid}`;
  const main = new Set(traceEvents.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain').map(threadOf));
  const tasks = traceEvents.filter((event) => event.name.endsWith('RunTask') && main.has(threadOf(event)));
  const cost = Math.max(...tasks.map(({ tdur = 0 }) => tdur)) / 1_000;
  expect(tasks.length).toBeGreaterThan(MESSAGES);
  expect(cost).toBeLessThan(50);

  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  expect(usedSize).toBeLessThan(80e6);
  expect(await page.locator('#rows tbody tr').count()).toBe(60);
  await eventually(() => server.streams.size === 1);
});
