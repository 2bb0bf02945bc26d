// The six situations that an operator is called for: each is named by the first screen, without opening anything, and by `ndl` alone.
import { Locks } from 'nestjs-distributed-lock/core';
import { DistributedLockDashboardModule } from 'nestjs-distributed-lock/dashboard';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { redisStore } from 'nestjs-distributed-lock/redis';
import type { Page } from 'playwright-core';
import { serve } from '../../integrations/http-app.js';
import { forkChild, type Child } from '../../support/child.js';
import { ndlHere } from '../../support/cli.js';
import { eventually } from '../../support/eventually.js';
import { PostgresServer, postgresUrl, startPostgres } from '../../support/postgres-server.js';
import { startRedis } from '../../support/redis-server.js';
import { startProxy, type TcpProxy } from '../../support/tcp-proxy.js';
import { POSTGRES, RESP } from '../../support/tcp-proxy-framing.js';
import { useBrowser } from './browser.js';

const tabs = useBrowser();
const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** A server, and a proxy before it, whose ends are switched. */
async function serverOf(kind: string): Promise<{ url: string; proxied: string; proxy: TcpProxy }> {
  const server = kind === 'redis' ? await startRedis({ port: 'free' }) : await startPostgres({ port: 'free' });
  ends.push(() => server.stop());
  const url = server instanceof PostgresServer ? postgresUrl(server.connection) : `redis://127.0.0.1:${server.port}`;
  if (kind === 'postgres') {
    const locks = new Locks(postgresStore({ url, schema: 'create' }));
    await locks.using('key', () => undefined);
    await locks.close();
  }
  const proxy = await startProxy({ port: Number(new URL(url).port) }, Math.random, kind === 'redis' ? RESP : POSTGRES);
  ends.push(() => proxy.close());
  return { url, proxied: url.replace(new URL(url).port, String(proxy.port)), proxy };
}

/** What the page says, byte for byte but for the time. */
const bytesOf = async (page: Page): Promise<string> => {
  const parts = await page
    .locator('header, .alarms, #all')
    .evaluateAll((elements) => elements.map((each) => (each as { innerHTML: string }).innerHTML));
  // lit-html marks its places by a number of each page.
  return parts
    .join('')
    .replace(/lit\$\d+\$/g, '')
    .replace(/\d\d:\d\d(:\d\d)?/g, '<time>')
    .replace(/\b[\d.]+ (ms|s|min)\b/g, '<span>');
};

it.each(['redis', 'postgres'] as const)('on %s', async (kind) => {
  const { url, proxied, proxy } = await serverOf(kind);
  const child = async (app: string): Promise<(order: object) => Promise<void>> => {
    const forked: Child<{ type: 'done' }> = await forkChild('test/dashboard/situations.child.ts', { args: [url, app] });
    ends.push(() => forked.kill());
    await forked.waitFor('done');
    processes.set(app, forked);
    return async (order) => {
      forked.send(order);
      await forked.waitFor('done');
    };
  };
  const processes = new Map<string, Child<{ type: 'done' }>>();
  const [jobs, orders, catalog, oom] = await Promise.all([child('jobs'), child('orders'), child('catalog'), child('oom')]);
  const imports = [DistributedLockDashboardModule.forRoot({ authorize: () => ({ by: 'anna' }) })];
  const store = kind === 'redis' ? redisStore({ url: proxied }) : postgresStore({ url: proxied });
  const { url: app } = await serve('express', { imports }, { store });
  const page = await tabs.open(`${app}/locks`);
  const says = (text: RegExp) =>
    eventually(async () => expect((await page.locator('#page').innerText()).replace(/\s+/g, ' ')).toMatch(text));
  const ndl = async (...args: string[]) => ndlHere([...args, '--url', url]);

  // A hung holder with 50 waiters, and a semaphore whose permits are never given back.
  await jobs({ verb: 'hold', key: 'import', label: 'Jobs.importAll' });
  await jobs({ verb: 'hold', key: 'gpu', label: 'Model.train', count: 3 });
  await catalog({ verb: 'wait', key: 'import', label: 'Catalog.import', count: 50 });
  await catalog({ verb: 'wait', key: 'gpu', label: 'Model.test', count: 20 });
  await catalog({ verb: 'later' });
  // Two that wait for each other.
  await jobs({ verb: 'chain', key: 'order', label: 'Jobs.pay', next: 'stock' });
  await orders({ verb: 'chain', key: 'stock', label: 'Orders.sell', next: 'order' });
  for (const each of [jobs, orders]) await each({ verb: 'goOn' });
  // A cron whose tick is over, and which another replica has skipped.
  await jobs({ verb: 'tick', key: 'tick', label: 'Jobs.tick' });
  await orders({ verb: 'tick', key: 'tick', label: 'Jobs.tick' });
  // A process that stands still: one of its leases runs out meanwhile, the other one does not.
  await oom({ verb: 'hold', key: 'archive', label: 'Archive.run', keyTimeout: 3_600_000 });
  await oom({ verb: 'hold', key: 'export', label: 'Export.run', keyTimeout: 10_000 });
  await says(/export mutex oom@\S+ Export\.run/);
  processes.get('oom')!.pause();
  await says(/\d of \d processes answer, silent: oom@/);
  const listed = (await ndl('ls')).stdout;
  for (const line of [
    /^import .* Jobs\.importAll .* 50 +5 min/m,
    /^gpu +semaphore of 3 .* 20 +5 min/m,
    /^tick .*\(kept\)/m,
    /^archive .*\(silent\)/m,
  ])
    expect(listed).toMatch(line);

  await says(/import: 50 wait, the first for 5 min; Jobs\.importAll of jobs@\S+ holds it for \d+ m?s and answers/);
  await says(/gpu: 20 wait for one of 3 permits, the first for 5 min; Model\.train of jobs@/);
  await says(/Deadlock: (Jobs\.pay|Orders\.sell) of .* holds (order|stock) and waits for (order|stock); /);
  await says(/tick mutex kept until \d\d:\d\d/);
  await says(/skipped tick Jobs\.tick/);
  expect(await ndl('graph')).toMatchObject({ code: 6, stdout: expect.stringContaining('waits for') as string });
  expect((await ndl('show', 'gpu')).stdout).toMatch(/waiters {2}20, the first for 5 min/);
  await says(/ran out after \S+ m?s export Export\.run oom@\S+: silent for \d+/);

  // An outage, of the wire to this process.
  proxy.blackhole();
  await says(/default does not answer.* Since \d\d:\d\d:\d\d/);
  expect(await page.locator('#rows tr.stale').count()).toBeGreaterThan(4);
  expect(await ndlHere(['ls', '--url', proxied, '--timeout', '2s'])).toMatchObject({ code: 3, stdout: '' });
  await proxy.heal();
  await says(/the store was away for \d/);

  // It goes on, and finds its loss: that is the same one.
  processes.get('oom')!.resume();
  await says(/lost after \S+ m?s export Export\.run oom@/);
  await eventually(async () => expect(await bytesOf(page)).not.toContain('ran out'));
  const other = await tabs.open(`${app}/locks`);
  await eventually(async () => expect(await bytesOf(other)).toBe(await bytesOf(page)));
  expect(await page.locator('.numbers button', { hasText: 'Lost' }).innerText()).toMatch(/1$/);
});
