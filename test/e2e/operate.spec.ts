// "What you see when …" of docs/operate.md, with real processes.
import type { Redis } from 'ioredis';
import { Locks, type KeyReport } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { forkChild, type Child } from '../support/child.js';
import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import type { OperateMessage, OperateOrder } from './operate.child.js';

const KEY = 'order:42';

describe('an operator sees', () => {
  let server: RedisServer;
  let redis: Redis;
  let operator: Locks;
  const children: Child<OperateMessage>[] = [];

  beforeAll(async () => {
    server = await startRedis();
    redis = server.client();
  });
  afterAll(() => server.stop());
  beforeEach(async () => {
    await redis.flushall();
    operator = new Locks(redisStore({ options: server.connection }), { logger: false, app: 'operator' });
  });
  afterEach(async () => {
    await Promise.all(children.splice(0).map((child) => child.kill()));
    await operator.close();
  });

  async function service(app: string, ...orders: OperateOrder[]) {
    const child = await forkChild<OperateMessage>('test/e2e/operate.child.ts', { args: [JSON.stringify([server.connection, app])] });
    children.push(child);
    await child.waitFor('ready');
    for (const order of orders) child.send(order);
    return child;
  }
  const worker = async (keyTimeout?: number) => {
    const child = await service('shop', { type: 'work', key: KEY, label: 'Shop.sell', keyTimeout });
    await child.waitFor('holds');
    await seen(({ holders: [holder] }) => holder?.told?.label === 'Shop.sell');
    return child;
  };
  const seen = async (isSo: (report: KeyReport) => boolean): Promise<KeyReport> => {
    let report!: KeyReport;
    await eventually(async () => isSo((report = await operator.inspect(KEY))));
    return report;
  };

  it('a process that is paused: it is silent, its lease runs out, and it finds that out when it goes on', async () => {
    const child = await worker(3_000);
    child.pause();
    await seen(({ holders: [holder] }) => holder?.app === 'shop' && holder.told === undefined);
    await seen(({ kind }) => kind === 'free');
    child.resume();
    expect(await child.waitFor('ended')).toMatchObject({ outcome: 'LockLostError' });
  });

  it('a holder that was killed: it is silent, and the key is free within its keyTimeout', async () => {
    const child = await worker(3_000);
    await child.kill();
    await seen(({ holders: [holder] }) => holder?.pid === child.pid && holder.told === undefined);
    await seen(({ kind }) => kind === 'free');
  });

  it('a holder that is slow: what it does, since when, and that it renews its lease; asked, it gives the key back', async () => {
    const child = await worker(1_500);
    const first = await operator.inspect(KEY);
    const later = await seen(({ at }) => at.getTime() - first.at.getTime() > 2_000);
    expect(later.holders).toMatchObject([{ owner: first.holders[0]!.owner, told: { label: 'Shop.sell' } }]);
    expect(later.at.getTime() - later.holders[0]!.since!.getTime()).toBeGreaterThanOrEqual(2_000);
    expect(await operator.forceRelease(KEY, { reason: 'too slow' })).toMatchObject({ outcome: 'gave back' });
    expect(await child.waitFor('ended')).toMatchObject({ outcome: 'done' });
  });

  it('two services that wait for each other', async () => {
    const cross = async (app: string, first: string, second: string) => {
      const child = await service(app, { type: 'cross', first, second, label: `${app}.run` });
      await child.waitFor('holds');
      return child;
    };
    const both = [await cross('shop', 'stock', 'till'), await cross('bank', 'till', 'stock')];
    for (const child of both) child.send({ type: 'met' });
    const look = async () => {
      const reports = new Map<string, KeyReport>();
      for await (const report of operator.list({ state: 'used' })) reports.set(report.key, report);
      return operator.waitGraph(reports.values());
    };
    const [deadlock] = (await eventually(async () => {
      const found = await look();
      return found.length > 0 && found;
    })) as ReturnType<Locks['waitGraph']>;
    expect(new Set(deadlock!.keys)).toEqual(new Set(['stock', 'till']));
    expect(new Set(deadlock!.members.map(({ app, label, waitsFor }) => `${app} ${label} ${waitsFor}`))).toEqual(
      new Set(['shop shop.run till', 'bank bank.run stock']),
    );
    expect(deadlock!.endsIn).toBeGreaterThan(0);
  });

  it('why an app does not shut down: it still works under a key', async () => {
    const child = await worker();
    child.send({ type: 'close' });
    const held: string[] = [];
    for await (const { key, holders } of operator.list())
      for (const { app, pid, told } of holders) held.push(`${key} ${app} ${pid} ${told?.label}`);
    expect(held).toEqual([`${KEY} shop ${child.pid} Shop.sell`]);
    expect(await operator.forceRelease(KEY, { reason: 'shutdown' })).toMatchObject({ outcome: 'gave back' });
    await child.waitFor('closed');
  });
});
