import type { CounterMessage } from './counter.child.js';
import { setTimeout as pause } from 'node:timers/promises';
import type { Locks } from 'nestjs-distributed-lock/core';
import type { ReplyLoss } from '../../support/tcp-proxy.js';
import { shaOf, useRedis } from './setting.js';

const PROCESSES = 4;
const INCREMENTS = 10_000;

describe('4 processes that add 10,000 to one counter, which nothing else guards', () => {
  const setting = useRedis();

  async function count(guarded: boolean): Promise<{ counter: number; history: string[]; waits: number }> {
    const { connection } = setting.server;
    const args = { connection, increments: INCREMENTS / PROCESSES, callers: 2, guarded };
    const children = await Promise.all(Array.from({ length: PROCESSES }, () => setting.fork<CounterMessage>('counter.child.ts', args)));
    await Promise.all(children.map((child) => child.waitFor('ready', { within: 30_000 })));
    for (const child of children) child.send({ type: 'go' });
    const ends = await Promise.all(children.map((child) => child.waitFor('done', { within: 90_000 })));
    return {
      counter: Number(await setting.redis.get('counter')),
      history: await setting.redis.lrange('history', 0, -1),
      waits: ends.reduce((sum, { waits }) => sum + waits, 0),
    };
  }

  it('lose updates without a lock', async () => {
    const { counter, history } = await count(false);
    expect(history).toHaveLength(2 * INCREMENTS);
    expect(counter).toBeLessThan(INCREMENTS);
  }, 120_000);

  it('lose none with it, never overlap, and see tokens that only grow (G2)', async () => {
    const { counter, history, waits } = await count(true);
    expect(counter).toBe(INCREMENTS);
    expect(history).toHaveLength(2 * INCREMENTS);
    let last = 0;
    for (let i = 0; i < history.length; i += 2) {
      const token = Number(history[i]!.slice('in '.length));
      if (history[i + 1] !== `out ${token}` || !(token > last))
        throw new Error(`After token ${last}: ${history.slice(i, i + 4).join(', ')}`);
      last = token;
    }
    expect(waits).toBeGreaterThan(0);
    expect(await setting.keys()).toEqual(['counter', 'history', '{count}:fence', '{warm-up}:fence']);
  }, 120_000);
});

describe('6 stores that add 120 to one counter, over connections that break all the time', () => {
  const setting = useRedis();

  it('lose none, run each body once, and take no lease for lost (G2, G6, G10)', async () => {
    const proxy = await setting.proxy();
    const lost = jest.fn();
    const stores: Locks[] = [1, 2, 3].flatMap(() => [setting.own(proxy.connection), setting.borrowed(proxy.connection)]);
    for (const locks of stores) locks.on('lost', lost);
    let bodies = 0;
    let tokens = 0;
    const increment = async (token: number): Promise<void> => {
      bodies++;
      expect(token).toBeGreaterThan(tokens);
      tokens = token;
      const read = Number(await setting.redis.get('counter'));
      await setting.redis.set('counter', read + 1);
    };
    let isRunning = true;
    setting.finally(() => (isRunning = false));
    const trouble = (async () => {
      let loss: ReplyLoss | undefined;
      for (let before = 0; isRunning; before = bodies) {
        if (Math.random() < 0.5 || loss?.lost === 0) proxy.cut();
        else loss = proxy.dropReplyTo(shaOf(Math.random() < 0.5 ? 'acquire' : 'release'));
        // Trouble that leaves no room for progress would only show that.
        while (isRunning && bodies === before) await pause(5);
        await pause(Math.random() * 30);
      }
    })();
    const options = { keyTimeout: 1_000, waitTimeout: Infinity, retryInterval: 5 };
    await Promise.all(
      stores.map(async (locks) => {
        for (let i = 0; i < 20; i++) await locks.using('count', (lease) => increment(lease.fencingToken!), options);
      }),
    );
    isRunning = false;
    await trouble;
    expect(await setting.redis.get('counter')).toBe('120');
    expect(bodies).toBe(120);
    expect(lost).not.toHaveBeenCalled();
  }, 90_000);
});
