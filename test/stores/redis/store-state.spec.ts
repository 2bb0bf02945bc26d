import { Locks, StoreError, type LocksOptions } from 'nestjs-distributed-lock/core';
import { redisStore, type RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { eventually } from '../../support/eventually.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { pause } from '../../support/time.js';
import { useRedis } from './setting.js';

const REQUEST_TIMEOUT = 300;
const setting = useRedis();

function open(store: RedisStoreOptions, options: LocksOptions = {}) {
  const lines: string[] = [];
  const write = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
  const logger = { warn: write('warn'), error: write('error'), log: write('log') };
  const locks = new Locks(redisStore({ requestTimeout: REQUEST_TIMEOUT, ...store }), { logger, shutdownTimeout: 0, ...options });
  setting.finally(() => locks.close());
  return { locks, lines };
}

const reached = (proxy: TcpProxy) => open({ options: { ...proxy.connection, disconnectTimeout: 100 } });
/** Neither the open connections nor new ones. */
const down = (proxy: TcpProxy) => {
  proxy.refuse();
  proxy.cut();
};
const use = (locks: Locks) => locks.using('key', () => 5, { waitTimeout: 5000 });
const AWAY = /^warn Redis does not answer since \d{4}-\d\d-\d\dT[\d:.]+Z: .+; locks wait$/;
const BACK = /^warn Redis answers again after (\d+ ms|\d(\.\d)? s)$/;

describe('a store that goes away', () => {
  const lent = (options: object) => ({ client: setting.client(options) });
  it.each([
    ['of its own client', (options: object) => ({ options: { disconnectTimeout: 100, ...options } })],
    ['of a client that is lent to it', lent],
  ])('is named once, also while nothing is held, and once when it is back: a store %s', async (_whose, storeOf) => {
    const proxy = await setting.proxy();
    const { locks, lines } = open(storeOf(proxy.connection));
    await use(locks);
    down(proxy);
    await eventually(() => lines.length > 0);
    await pause(3 * REQUEST_TIMEOUT);
    expect(lines).toEqual([expect.stringMatching(AWAY)]);
    await proxy.heal();
    await eventually(() => lines.length > 1);
    await use(locks);
    await pause(2 * REQUEST_TIMEOUT);
    expect(lines.slice(1)).toEqual([expect.stringMatching(BACK)]);
  });

  it('is named with the error of the connection', async () => {
    const { locks, lines } = open({ options: { ...setting.server.connection, disconnectTimeout: 100 } });
    await use(locks);
    await setting.server.kill();
    await eventually(() => lines.length > 0);
    expect(lines[0]).toMatch(/Z: connect (ECONNREFUSED|ENOENT) .+; locks wait$/);
    await setting.server.restart();
    await eventually(() => lines.length > 1);
    expect(lines[1]).toMatch(BACK);
  });

  it('is named when it is silent on connections that stay open, of a client that nobody watches', async () => {
    const proxy = await setting.proxy();
    const { locks, lines } = open({ client: setting.client(proxy.connection) });
    await use(locks);
    await setting.server.pause();
    setting.finally(() => setting.server.resume());
    await locks.acquire('key', { waitTimeout: 0 }).catch(() => undefined);
    await eventually(() => lines.length > 0);
    expect(lines).toEqual([expect.stringMatching(AWAY)]);
    await setting.server.resume();
    await eventually(() => lines.length > 1);
    expect(lines[1]).toMatch(BACK);
    await use(locks);
    await pause(2 * REQUEST_TIMEOUT);
    expect(lines).toHaveLength(2);
  });

  it('is not named when an idle connection breaks and is back at once, nor when it is closed', async () => {
    const proxy = await setting.proxy();
    const { locks, lines } = reached(proxy);
    await use(locks);
    proxy.cut();
    await pause(2 * REQUEST_TIMEOUT);
    await use(locks);
    await locks.close();
    const client = setting.client(proxy.connection);
    const lentTo = open({ client });
    await use(lentTo.locks);
    await client.quit();
    await pause(2 * REQUEST_TIMEOUT);
    expect([...lines, ...lentTo.lines]).toEqual([]);
  });

  it('leaves no listener at a client that was lent', async () => {
    const client = setting.client();
    const count = () => ['close', 'ready', 'end', 'error', '-node'].map((event) => client.listenerCount(event));
    const before = count();
    const { locks } = open({ client });
    await use(locks);
    await locks.close();
    expect(count()).toEqual(before);
  });
});

describe('the check of a store', () => {
  const checked = async (store: RedisStoreOptions, name?: string) => {
    const opened = open(store);
    const start = performance.now();
    const error = await opened.locks.checkStore(name).then(
      () => undefined,
      (cause: unknown) => cause as StoreError,
    );
    return { ...opened, error, took: performance.now() - start };
  };

  it('says which server answers, and what it can do, and leaves nothing behind', async () => {
    const { lines, error } = await checked({ options: setting.server.connection }, 'orders');
    expect(error).toBeUndefined();
    expect(lines).toEqual([
      expect.stringMatching(/^log Store "orders": (Redis|Valkey) \d+\.\d+\.\d+ answers in \d+ ms; waiters are woken$/),
    ]);
    expect(await setting.keys()).toEqual([]);
  });

  it('warns about a server that evicts locks', async () => {
    await setting.redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    setting.finally(() => setting.redis.config('SET', 'maxmemory-policy', 'noeviction'));
    const { lines } = await checked({ options: setting.server.connection });
    expect(lines.slice(1)).toEqual([
      'warn Redis has maxmemory-policy allkeys-lru: when its memory is full, it evicts locks that are held. Set it to noeviction.',
    ]);
  });

  it('says no version to a user who may not ask for it, and nothing else', async () => {
    await setting.redis.acl('SETUSER', 'shop', 'on', '>secret', '~shop:*', '~{shop:*', 'resetchannels', '+@all', '-info');
    const options = { ...setting.server.connection, username: 'shop', password: 'secret', enableReadyCheck: false };
    const store = redisStore({ options });
    const lines: string[] = [];
    const write = (line: string) => void lines.push(line);
    const locks = new Locks(store, { namespace: 'shop:', logger: { warn: write, error: write, log: write } });
    setting.finally(() => locks.close());
    await locks.checkStore();
    expect(lines).toEqual([expect.stringMatching(/^Redis answers in \d+ ms; waiters are woken$/)]);
  });

  it.each([
    [
      'a wrong password',
      { username: 'shop', password: 'wrong' },
      /^warn Redis refuses this app: Redis: WRONGPASS .+\. Check the address, the user, the password and the ACL rules$/,
    ],
    ['a key that is not permitted', { username: 'reports', password: 'secret' }, /^warn Redis refuses this app: Redis: NOPERM .+/],
  ])('names %s at once, in one line', async (_what, user, line) => {
    await setting.redis.acl('SETUSER', 'shop', 'on', '>secret', '~*', '+@all');
    await setting.redis.acl('SETUSER', 'reports', 'on', '>secret', '~reports:*', '+@all');
    const { lines, error, took } = await checked({ options: { ...setting.server.connection, ...user }, requestTimeout: 2000 });
    expect(error).toBeInstanceOf(StoreError);
    expect(took).toBeLessThan(1500);
    await pause(2500);
    expect(lines).toEqual([expect.stringMatching(line)]);
  });

  it('names a password that is missing', async () => {
    await setting.redis.config('SET', 'requirepass', 'secret');
    setting.finally(() => setting.redis.config('SET', 'requirepass', ''));
    const { lines } = await checked({ options: setting.server.connection });
    expect(lines).toEqual([expect.stringMatching(/^warn Redis refuses this app: Redis: NOAUTH /)]);
  });

  it('names a server that cannot be reached in one line, within a requestTimeout, and its return', async () => {
    const proxy = await setting.proxy();
    proxy.refuse();
    const { locks, lines, error, took } = await checked({ options: { ...proxy.connection, disconnectTimeout: 100 } });
    expect(error).toMatchObject({ transient: true });
    expect(took).toBeLessThan(REQUEST_TIMEOUT + 1000);
    await pause(3 * REQUEST_TIMEOUT);
    expect(lines).toEqual([
      expect.stringMatching(/^warn Redis cannot be reached: Redis is not connected within 300 ms \(.+\); locks wait until it answers$/),
    ]);
    await proxy.heal();
    await use(locks);
    await eventually(() => lines.length > 1);
    expect(lines.slice(1)).toEqual([expect.stringMatching(BACK)]);
  });
});
