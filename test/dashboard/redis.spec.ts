import { DistributedLockDashboardModule } from 'nestjs-distributed-lock/dashboard';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { serve } from '../integrations/http-app.js';
import { forkChild } from '../support/child.js';
import { eventually, staysTrue } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import type { Messages, Note } from '../../lib/dashboard/dashboard.protocol.js';
import { openStream } from './opened.js';

interface Holds {
  type: 'holds';
  owner: string;
}

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

const open = async () => {
  const imports = [DistributedLockDashboardModule.forRoot({ authorize: () => true })];
  const served = await serve('express', { imports }, { store: redisStore({ options: server.connection }) });
  return { ...served, stream: () => openStream(`${served.url}/locks/events`) };
};

it('keys of other processes are shown with their waiters, and a process that does not answer', async () => {
  const { locks, stream } = await open();
  const child = await forkChild<Holds | { type: 'ready' }>('test/dashboard/shop.child.ts', { args: [JSON.stringify(server.connection)] });
  await child.waitFor('ready');
  const page = await stream();
  await page.message('hello');
  child.send({ key: 'order:42' });
  const { owner } = await child.waitFor('holds');
  await page.message('delta', ({ put }) => put.some(({ key, holder }) => key === 'order:42' && holder?.owner === owner));
  locks.acquire('order:42', { waitTimeout: 60_000 }).catch(() => undefined);
  const { put } = await page.message('delta', (delta) => delta.put.some(({ waiters }) => waiters === 1));
  expect(put).toMatchObject([{ key: 'order:42', holder: { owner, label: 'ShopService.sell', isSilent: false }, waiters: 1 }]);
  await page.message('stats', ({ processes }) => processes.length === 2 && processes.every(({ isSilent }) => !isSilent));
  child.pause();
  await page.message('stats', ({ processes }) => processes.some(({ name, isSilent }) => isSilent && owner.startsWith(name)));
  child.resume();
  await child.kill();
});

it('two callers that wait for each other are named as a deadlock', async () => {
  const { locks, stream } = await open();
  const page = await stream();
  const both = ['a', 'b'].map((key, index, keys) =>
    locks.using(key, async () => {
      await eventually(async () => (await locks.inspect(keys[1 - index]!)).holderCount === 1);
      await locks.acquire(keys[1 - index]!, { waitTimeout: 30_000 });
    }),
  );
  const ended = Promise.allSettled(both);
  const { alerts } = await page.message('stats', (stats) => stats.alerts.some(({ kind }) => kind === 'deadlock'));
  expect(alerts.find(({ kind }) => kind === 'deadlock')?.text).toMatch(/^Deadlock: (Orders\.pay of )?.* holds a and waits for b/);
  await locks.close();
  await ended;
});

it('the answer for a key has its last holds', async () => {
  const { locks, stream, url } = await open();
  const page = await stream();
  await page.message('stats');
  for (let count = 0; count < 25; count++) {
    const lease = await locks.acquire('busy', { label: `holder ${count}` });
    await lease.release();
  }
  const answer = async () => (await fetch(`${url}/locks/key?store=default&key=busy`, { headers: { 'x-lock-dashboard': '1' } })).json();
  await eventually(async () => {
    const { notes } = (await answer()) as { notes: Note[] };
    expect(notes).toHaveLength(20);
    expect(notes[0]).toMatchObject({ event: 'released', label: 'holder 24', held: expect.any(Number) });
  });
});

it('what the doctor says against the store is an alert, also after the only page is loaded again', async () => {
  const { stream } = await open();
  const client = server.client();
  const isUnfit = ({ alerts }: Messages['stats']) => alerts.some(({ text }) => text.includes('allkeys-lru'));
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  const first = await stream();
  await first.message('stats', isUnfit);
  first.close();
  await eventually(() => first.isOver);
  await (await stream()).message('stats', isUnfit);
  await client.config('SET', 'maxmemory-policy', 'noeviction');
});

it('while nobody looks, nothing is sent and nothing listens', async () => {
  const { locks, stream } = await open();
  const client = server.client();
  const counted = async (): Promise<string> => {
    const info = await client.info('stats');
    return /total_commands_processed:(\d+)/.exec(info)![1]!;
  };
  /** The next INFO is one command more. */
  const isQuiet = async (): Promise<void> => {
    let before = Number(await counted());
    await staysTrue(async () => {
      const now = Number(await counted());
      expect(now - before).toBe(1);
      before = now;
    }, 3000);
  };
  await locks.health();
  await isQuiet();
  const page = await stream();
  await page.message('stats');
  const lease = await locks.acquire('quiet');
  await page.message('delta', ({ put }) => put.some(({ key }) => key === 'quiet'));
  await lease.release();
  page.close();
  // The stores are followed for a minute more, for a page that is loaded again.
  const real = performance.now.bind(performance);
  let late = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => real() + late);
  await eventually(
    async () => {
      late += 61_000;
      await isQuiet();
    },
    // eslint-disable-next-line tests/no-upper-bound-on-time -- the test moves this clock
    { within: 1e9 },
  );
});
