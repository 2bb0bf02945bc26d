import { DistributedLockDashboardModule } from 'nestjs-distributed-lock/dashboard';
import { redisStore } from 'nestjs-distributed-lock/redis';
import type { PageState } from '../../lib/dashboard/dashboard.protocol.js';
import { serve } from '../integrations/http-app.js';
import { forkChild } from '../support/child.js';
import { eventually, staysTrue } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';

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
  const state = async () => (await served.ask('locks/state', { headers: { 'x-lock-dashboard': '1' } })).body as PageState;
  /** Resolves to the first state that is as wanted. */
  const until = (isWanted: (state: PageState) => boolean) =>
    eventually(async () => {
      const said = await state();
      return isWanted(said) && said;
    }) as Promise<PageState>;
  return { ...served, state, until };
};

it('keys of other processes are shown with their waiters, and a process that does not answer', async () => {
  const { locks, until } = await open();
  const child = await forkChild<Holds | { type: 'ready' }>('test/dashboard/shop.child.ts', { args: [JSON.stringify(server.connection)] });
  await child.waitFor('ready');
  child.send({ key: 'order:42' });
  const { owner } = await child.waitFor('holds');
  locks.acquire('order:42', { waitTimeout: 60_000 }).catch(() => undefined);
  const { rows } = await until(({ rows: [row] }) => row?.waiters === 1);
  expect(rows).toMatchObject([{ key: 'order:42', holder: { owner, label: 'ShopService.sell', isSilent: false }, waiters: 1 }]);
  await until(({ processes }) => processes.known === 2 && processes.silent.length === 0);
  child.pause();
  await until(({ processes: { silent } }) => silent.length === 1 && owner.startsWith(silent[0]!));
  child.resume();
  await child.kill();
});

it('two callers that wait for each other are named as a deadlock', async () => {
  const { locks, until } = await open();
  const end = new AbortController();
  const both = ['a', 'b'].map((key, index, keys) =>
    locks.using(key, async () => {
      await eventually(async () => (await locks.inspect(keys[1 - index]!)).holderCount === 1);
      await locks.acquire(keys[1 - index]!, { waitTimeout: 30_000, signal: end.signal });
    }),
  );
  const ended = Promise.allSettled(both);
  const { alarms } = await until((state) => state.alarms.some(({ kind }) => kind === 'deadlock'));
  expect(alarms.find(({ kind }) => kind === 'deadlock')?.text).toMatch(/^Deadlock: (Orders\.pay of )?.* holds a and waits for b/);
  end.abort();
  await ended;
});

it('what the doctor says against the store is its advice', async () => {
  const { until } = await open();
  const client = server.client();
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  await until(({ advice }) => advice.some((text) => text.includes('allkeys-lru')));
  await client.config('SET', 'maxmemory-policy', 'noeviction');
});

it('while nobody looks, nothing is sent and nothing listens', async () => {
  const { state } = await open();
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
  expect((await state()).stores[0]!.at).not.toBeNull();
  // The doctor goes on for a while.
  await eventually(isQuiet);
});
