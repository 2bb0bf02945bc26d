import { mkdirSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { StoreError } from 'nestjs-distributed-lock/core';
import { leaseScripts } from '../../../lib/stores/redis/lua.scripts.js';
import { eventually } from '../../support/eventually.js';
import { startRedis } from '../../support/redis-server.js';
import { HEAD_START, SLACK, outcomeOf, useRedis } from './setting.js';

const KEY = 'order:42';

describe('a server that refuses for good', () => {
  const setting = useRedis({ password: 'secret' });
  const as = (username: string) => ({ ...setting.server.connection, username, password: 'pass' });
  const allow = (user: string, ...rules: string[]) =>
    setting.redis.acl('SETUSER', user, 'on', '>pass', 'resetkeys', 'nocommands', ...rules);

  beforeEach(async () => {
    await allow('no-scripts', '+@all', '-@scripting', '~*');
    await allow('no-keys', '+@all', '~other:*');
    await allow('no-eval', '+@all', '-eval', '~*');
  });

  describe.each(['own', 'borrowed'] as const)('to the %s client of a store', (whose) => {
    it.each([
      ['NOAUTH', 'no password', () => ({ ...setting.server.connection, password: undefined })],
      ['WRONGPASS', 'a wrong password', () => ({ ...setting.server.connection, password: 'guess' })],
      ['NOPERM', 'no right to run scripts', () => as('no-scripts')],
      ['NOPERM', 'no right to the key', () => as('no-keys')],
      ['NOPERM', 'a right to run known scripts only', () => as('no-eval')],
    ])('with %s, for %s: is a StoreError at once, though the wait has no end (G9)', async (code, _, connection) => {
      await setting.redis.script('FLUSH');
      const body = jest.fn();
      const { error, took } = await outcomeOf(setting[whose](connection()).using(KEY, body, { waitTimeout: Infinity }));
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ transient: false, code: 'LOCK_STORE', message: expect.stringContaining(code) });
      expect(took).toBeLessThan(1_000 + SLACK);
      expect(body).not.toHaveBeenCalled();
      expect(await setting.keys()).toEqual([]);
    });
  });

  it('is asked as ever once it allows', async () => {
    const locks = setting.own(as('no-keys'));
    await expect(locks.acquire(KEY)).rejects.toThrow('NOPERM');
    await allow('no-keys', '+@all', '~*');
    expect(await (await locks.acquire(KEY)).release()).toBe(true);
  });
});

describe('a server that is the master no more', () => {
  const setting = useRedis();

  it.each(['acquire', 'release'] as const)('is told to the client by %s, which may look for the new one', async (script) => {
    await setting.redis.set(KEY, 'owner');
    await setting.redis.replicaof('127.0.0.1', 1);
    const keys = script === 'acquire' ? [KEY, `{${KEY}}:fence`, `{${KEY}}:queue`] : [KEY, `{${KEY}}:queue`];
    const args = script === 'acquire' ? ['owner', 1000] : ['owner'];
    await expect(setting.redis.eval(leaseScripts(1000).mutex[script], keys.length, ...keys, ...args)).rejects.toThrow(/^READONLY/);
    await setting.redis.replicaof('NO', 'ONE');
  });
});

describe('a client of the store whose server is the master no more', () => {
  const setting = useRedis();
  afterEach(() => setting.redis.replicaof('NO', 'ONE'));

  it('begins a new connection once, however many requests are refused, and leaves no listener behind (G7)', async () => {
    const locks = setting.overIoredis({ options: setting.server.connection });
    await locks.using(KEY, () => undefined);
    const { stream } = (locks.store.mutex as unknown as { requests: { connection: { client: { stream: Socket } } } }).requests.connection
      .client;
    const before = stream.listenerCount('close');
    await setting.redis.replicaof('127.0.0.1', 1);
    // Each is a command of its own, and all are under way together.
    const calls = Array.from({ length: 50 }, (_, i) => outcomeOf(locks.countDownLatch(`latch:${i}`).trySetCount(1, { waitTimeout: 0 })));
    for (const { error } of await Promise.all(calls)) expect(error).toBeInstanceOf(StoreError);
    await setting.redis.replicaof('NO', 'ONE');
    await locks.using(KEY, () => undefined, { waitTimeout: 5_000 });
    expect(stream.destroyed).toBe(true);
    // One for the one time that it was closed.
    expect(stream.listenerCount('close')).toBeLessThanOrEqual(before + 1);
  });
});

describe('a server that refuses for now', () => {
  const setting = useRedis();
  const rdb = (): string => join(dirname(setting.server.path!), 'dump.rdb');

  const REFUSALS: [string, { begin: () => unknown; end: () => unknown }][] = [
    ['OOM', { begin: () => setting.redis.config('SET', 'maxmemory', 1), end: () => setting.redis.config('SET', 'maxmemory', 0) }],
    ['READONLY', { begin: () => setting.redis.replicaof('127.0.0.1', 1), end: () => setting.redis.replicaof('NO', 'ONE') }],
    [
      'MISCONF',
      {
        // The snapshot cannot take the place of a directory.
        async begin() {
          mkdirSync(join(rdb(), 'in-the-way'), { recursive: true });
          await setting.redis.set('unsaved', 1);
          await setting.redis.config('SET', 'save', '3600 1');
          await setting.redis.bgsave();
          await eventually(async () => (await setting.redis.info('persistence')).includes('rdb_last_bgsave_status:err'));
        },
        async end() {
          rmSync(rdb(), { recursive: true, force: true });
          await setting.redis.config('SET', 'save', '');
        },
      },
    ],
  ];

  describe.each(REFUSALS)('with %s', (code, refusal) => {
    afterEach(() => refusal.end());

    it.each(['own', 'borrowed'] as const)('is a StoreError when patience has ended, not before, on the %s client (G9)', async (whose) => {
      const locks = setting[whose]();
      await refusal.begin();
      const { error, took } = await outcomeOf(locks.acquire(KEY, { waitTimeout: 400, retryInterval: 50 }));
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ transient: true });
      expect((error as StoreError).message + String((error as StoreError).cause)).toContain(code);
      expect(took).toBeGreaterThanOrEqual(400 - HEAD_START);
      expect(took).toBeLessThan(400 + 1_000 + SLACK);
    });

    it('is asked until it is cured', async () => {
      await refusal.begin();
      const call = outcomeOf(setting.own().acquire(KEY, { waitTimeout: Infinity, retryInterval: 100 }));
      setTimeout(() => void refusal.end(), 300);
      const { value, took } = await call;
      expect(took).toBeGreaterThan(290 - HEAD_START);
      expect(took).toBeLessThan(300 + 1_000 + SLACK);
      expect(await value!.release()).toBe(true);
    });

    it('has the key freed in the background, where it refused the release (G7, G10)', async () => {
      const call = setting.own().using(
        KEY,
        async () => {
          await refusal.begin();
          return 'result';
        },
        { keyTimeout: 60_000 },
      );
      expect(await call).toBe('result');
      await refusal.end();
      await eventually(async () => (await setting.redis.exists(KEY)) === 0);
    });
  });

  it.each(['own', 'borrowed'] as const)(
    'since it is loading is waited for by the %s client, then used within a second (G9)',
    async (whose) => {
      const slowly = ['--key-load-delay', '400', '--loading-process-events-interval-bytes', '1024'];
      const server = await startRedis({ args: slowly });
      setting.finally(() => server.stop());
      const redis = server.client({ enableReadyCheck: false });
      await redis.eval(`for i = 1, 4000 do redis.call('SET', 'filler:' .. i, string.rep('x', 64)) end`, 0);
      await redis.save();
      const notReady = whose === 'borrowed' ? { enableReadyCheck: false } : {};
      const locks = setting[whose]({ ...server.connection, ...notReady });
      await locks.using('warm-up', () => undefined);
      const impatient = setting[whose]({ ...server.connection, ...notReady }, { requestTimeout: 300 });

      const restarted = server.restart();
      await eventually(async () => (await redis.info('persistence')).includes('loading:1'));
      const call = locks.acquire(KEY, { keyTimeout: 30_000, waitTimeout: Infinity, retryInterval: 50 });
      const { error } = await outcomeOf(impatient.acquire(KEY, { waitTimeout: 100, retryInterval: 50 }));
      expect((await redis.info('persistence')).includes('loading:1')).toBe(true);
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ transient: true });
      await restarted;
      const { value, took } = await outcomeOf(call);
      expect(took).toBeLessThan(1_000 + SLACK);
      expect(await value!.release()).toBe(true);
    },
  );
});
