import type { CounterMessage } from './counter.child.js';
import { useRedis } from './setting.js';

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
