// What operators see and do on a real server, of processes of their own.
import { StoreError, type KeyReport, type Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { read } from '../../support/markdown.js';
import type { InspectArgs, InspectMessage } from './inspect.child.js';
import { endOf, refusedBy, useRedis } from './setting.js';
import { waiterFor, woken } from './waiting.js';

const KEY = 'order:42';
const reason = 'stuck import';

const setting = useRedis();

async function worker(options: Partial<InspectArgs> = {}) {
  const args: InspectArgs = { connection: setting.server.connection, key: KEY, keyTimeout: 60_000, isStubborn: false, ...options };
  const child = await setting.fork<InspectMessage>('inspect.child.ts', args);
  return { child, ...(await child.waitFor('works')) };
}

/** Once the process of the holder listens. */
async function reportBy(locks: Locks): Promise<KeyReport> {
  return (await eventually(async () => {
    const report = await locks.inspect(KEY);
    return report.holders[0]?.report !== undefined && report;
  })) as KeyReport;
}

describe('inspect on Redis', () => {
  it('shows a value that no lock has written as foreign, with the end of its lease, never the value, and leaves it alone', async () => {
    const { redis } = setting;
    await redis.set('text', 'a secret', 'PX', 60_000);
    await redis.set('long', 'secret'.repeat(1_000));
    await redis.rpush('list', 'secret');
    await redis.hset('hash', 'field', 'secret');
    await redis.zadd('data', 1, 'secret');
    await redis.set('{odd}:fence', 'secret');
    await redis.set('odd', 'x@y:1:secret'.slice(0, 4));
    const locks = setting.own();
    for (const key of ['text', 'long', 'list', 'hash', 'data', 'odd']) {
      const report = await locks.inspect(key).catch((error: unknown) => error);
      const remaining = key === 'text' ? (expect.any(Number) as number) : null;
      if (key !== 'odd') expect(report).toMatchObject({ kind: 'foreign', holders: [], remaining });
      expect(JSON.stringify(report)).not.toContain('secret');
      await expect(locks.forceRelease(key, { reason })).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
    }
    expect(await redis.get('text')).toBe('a secret');
    expect(await redis.dbsize()).toBe(7);
  });

  it('finds its keys among names that others have made', async () => {
    const { redis } = setting;
    await redis.hset('{x}:queue', 'latch', 'no');
    await redis.hset('odd', 'latch', 'no');
    await redis.set('{foo}:fence', 'hello');
    await redis.zadd('{jobs}:queue', 'inf', 'a secret');
    await redis.zadd('{more}:queue', 1.5, 'a secret');
    await redis.set('{}:queue', 'text');
    const locks = setting.own();
    const lease = await locks.acquire(KEY, woken);
    const found = [];
    for (const state of ['held', 'waited', 'used'] as const) for await (const report of locks.list({ state })) found.push(report);
    expect(found.map(({ key }) => key)).toEqual([KEY, KEY]);
    expect(JSON.stringify(await locks.inspect('jobs'))).not.toContain('secret');
    await lease.release();
  });

  it('shows what another process does, says when it is silent, and gets the key back from it', async () => {
    const { child, owner, token } = await worker();
    const locks = setting.own();
    const report = await reportBy(locks);
    expect(report).toMatchObject({ kind: 'mutex', fencingToken: token });
    expect(report.holders).toMatchObject([{ owner, app: 'worker', pid: child.pid, report: { label: 'Worker.work', fencingToken: token } }]);
    child.pause();
    const silent = await locks.inspect(KEY);
    expect(silent.holders).toMatchObject([{ owner, app: 'worker', pid: child.pid }]);
    expect(silent.holders[0]!.report).toBeUndefined();
    child.resume();
    await reportBy(locks);
    const next = locks.acquire(KEY, woken);
    expect(await locks.forceRelease(KEY, { reason, by: 'jane', grace: 600_000 })).toEqual({ outcome: 'gave back', holder: owner });
    expect(await child.waitFor('ended')).toMatchObject({ result: 'aborted' });
    await (await next).release();
    expect(await setting.redis.exists('nestjs-distributed-lock:audit')).toBe(0);
  });

  it('shows which waiters are gone', async () => {
    const locks = setting.own();
    const proxy = await setting.proxy();
    const passOn = await waiterFor(setting, KEY, setting.own(proxy.connection), woken, locks);
    await eventually(async () => (await locks.inspect(KEY)).waiters[0]?.isHeard === true);
    proxy.refuse();
    proxy.cut();
    await eventually(async () => (await locks.inspect(KEY)).waiters[0]?.isHeard === false);
    await proxy.heal();
    await passOn();
  });

  it('receives nothing of another database or keyPrefix', async () => {
    const seen: string[][] = [[], [], []];
    const end = new AbortController();
    const clients = [{}, { db: 1 }, { keyPrefix: 'p:' }];
    const all = clients.map((options) => setting.overIoredis({ client: setting.client(options) }));
    const watching = all.map(async (locks, index) => {
      for await (const { key } of locks.watch({ signal: end.signal })) seen[index]!.push(key);
    });
    const held = await Promise.all(all.map((locks, index) => locks.acquire(`of ${index}`)));
    await Promise.all(all.map((locks, index) => locks.acquire(`of ${index}`, { waitTimeout: 20 }).catch(() => undefined)));
    await eventually(() => seen.every((keys) => keys.length > 0));
    await Promise.all(held.map((lease) => lease.release()));
    end.abort();
    await Promise.all(watching);
    expect(seen.map((keys) => [...new Set(keys)])).toEqual([['of 0'], ['of 1'], ['of 2']]);
  });

  it('sends no message when nobody asks', async () => {
    const locks = setting.own();
    const lease = await locks.acquire(KEY, { keyTimeout: 5_000 });
    // A renewal opens the inbox.
    await eventually(() => locks.store.mutex.wakeUps!.isOpen);
    await setting.redis.config('RESETSTAT');
    const end = endOf(lease);
    await eventually(() => endOf(lease) > end + 500);
    await lease.release();
    expect(await setting.redis.info('commandstats')).not.toMatch(/cmdstat_(publish|subscribe):/);
  });
});

it('forceRelease on Redis takes the key from a process that goes on, and from one that is silent, which is not waited for', async () => {
  for (const isSilent of [false, true]) {
    const { child, owner, token } = await worker({ isStubborn: true, keyTimeout: 20_000 });
    const locks = setting.own();
    await reportBy(locks);
    const next = locks.acquire(KEY, woken);
    if (isSilent) child.pause();
    const grace = isSilent ? 1_000_000 : 500;
    expect(await locks.forceRelease(KEY, { reason, by: 'jane', token, grace })).toEqual({ outcome: 'forced', holder: owner });
    const lease = await next;
    expect(lease.fencingToken).toBeGreaterThan(token);
    if (isSilent) child.resume();
    child.send({ type: 'end' });
    expect(await child.waitFor('ended')).toMatchObject({ result: 'LockLostError' });
    expect(await lease.release()).toBe(true);
  }
  const notes = await setting.redis.xrange('nestjs-distributed-lock:audit', '-', '+');
  expect(notes.map(([, [, what]]) => what)).toEqual([0, 1].map(() => expect.stringMatching(/^"order:42" is taken from worker@\S+ by jane: stuck import$/))); // prettier-ignore
  expect(await setting.redis.ttl('nestjs-distributed-lock:audit')).toBeGreaterThan(29 * 86_400);
});

describe('the operator of the docs', () => {
  const lineOf = (user: string): string[] => new RegExp(`^user ${user} (.+)$`, 'm').exec(read('docs/operate.md'))![1]!.split(' ');
  const asUser = async (rights: readonly string[], username = 'operator') => {
    await setting.redis.acl('SETUSER', username, 'reset', ...rights);
    await setting.redis.acl('LOG', 'RESET');
    await setting.redis.script('FLUSH');
    const password = rights.find((right) => right.startsWith('>'))!.slice(1);
    const options = { ...setting.server.connection, username, password };
    return setting.locks({ options, requestTimeout: 2_000 });
  };
  const used = async (locks: Locks) => {
    const reports: KeyReport[] = [];
    for await (const report of locks.list({ state: 'used' })) reports.push(report);
    return reports;
  };
  const prepare = async () => {
    const locks = setting.own();
    const leases = [await locks.acquire('mutex', woken), await locks.semaphore('semaphore', { permits: 2 }).acquire(woken)];
    const waits = leases.map(({ key }) =>
      (key === 'mutex' ? locks.mutex(key) : locks.semaphore(key, { permits: 2, count: 2 })).acquire({ ...woken, fair: true }),
    );
    await locks.countDownLatch('latch').trySetCount(1);
    await eventually(async () => (await used(locks)).filter(({ waiterCount }) => waiterCount === 1).length === 2);
    return async () => {
      for (const lease of leases) await lease.release();
      for (const wait of waits) await (await wait).release();
    };
  };

  it.each(['viewer', 'operator'])('has exactly the rights that it needs as a %s', async (user) => {
    const end = await prepare();
    const rights = lineOf(user);
    const locks = await asUser(rights);
    expect((await used(locks)).map(({ key, kind }) => [key, kind]).sort()).toEqual([
      ['latch', 'count-down latch'],
      ['mutex', 'mutex'],
      ['semaphore', 'semaphore'],
    ]);
    if (user === 'operator') {
      for (const key of ['mutex', 'semaphore'])
        expect(await locks.forceRelease(key, { reason, grace: 0 })).toMatchObject({ outcome: 'forced' });
    }
    // A viewer cannot ask for keys, nor hear who is asked.
    const refused = user === 'viewer' ? ['nestjs-distributed-lock:revoke'] : [];
    expect(new Set(await refusedBy(setting.redis))).toEqual(new Set(refused));
    await end();
  });

  it('gets a typed error or a smaller report without one of them, and never hangs', async () => {
    // ioredis prints that it may not ask for INFO.
    const warn = jest.spyOn(console, 'warn').mockImplementation();
    const end = await prepare();
    const rights = lineOf('operator');
    const commands = rights.filter((each) => each.startsWith('+'));
    const outcomes = await Promise.all(
      commands.map(async (right) => {
        const locks = await asUser(
          rights.filter((each) => each !== right),
          `without-${right}`,
        );
        return used(locks).then(
          (reports) => `${reports.length} keys`,
          (error: unknown) => (error instanceof StoreError && !error.transient ? 'StoreError' : String(error)),
        );
      }),
    );
    expect(commands.map((right, i) => [right, outcomes[i]])).toEqual(
      commands.map((right) => [right, expect.stringMatching(/^([0-3] keys|StoreError)$/)]),
    );
    expect(outcomes).toContain('StoreError');
    await end();
    warn.mockRestore();
  });
});
