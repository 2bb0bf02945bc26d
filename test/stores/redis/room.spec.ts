import type { RoomMessage } from './room.child.js';
import { useRedis } from './setting.js';

const PROCESSES = 4;
const CALLERS = 10_000;
const PERMITS = 10;
const MB = 2 ** 20;

describe('10,000 callers of 4 processes, all at once, who want one of 10 permits', () => {
  const setting = useRedis();

  async function crowd(permits: readonly number[], callers: number) {
    const { connection } = setting.server;
    const fork = (_: unknown, i: number) =>
      setting.fork<RoomMessage>('room.child.ts', { connection, permits: permits[i % permits.length]!, callers: callers / PROCESSES });
    const children = await Promise.all(Array.from({ length: PROCESSES }, fork));
    await Promise.all(children.map((child) => child.waitFor('ready', { within: 30_000 })));
    for (const child of children) child.send({ type: 'go' });
    const ends = await Promise.all(children.map((child) => child.waitFor('done', { within: 120_000 })));
    const history = (await setting.redis.lrange('history', 0, -1)).map((entry) => entry.split(' ') as ['in' | 'out', string]);
    let inside = 0;
    const counts = history.map(([way]) => (inside += way === 'in' ? 1 : -1));
    return {
      served: ends.reduce((sum, end) => sum + end.served, 0),
      lost: ends.reduce((sum, end) => sum + end.lost, 0),
      /** By the counter that they share, and by the log. */
      most: Math.max(...ends.map((end) => end.most)),
      mostLogged: Math.max(...counts),
      left: inside,
      tokens: new Set(history.map(([, token]) => token)).size,
      rss: Math.max(...ends.map((end) => end.rss)),
    };
  }

  it('are all served, never more than 10 at a time, each with a token of its own (G2, G8)', async () => {
    const { rss, ...found } = await crowd([PERMITS], CALLERS);
    expect(found).toEqual({ served: CALLERS, lost: 0, most: PERMITS, mostLogged: PERMITS, left: 0, tokens: CALLERS });
    expect(rss).toBeLessThan(400 * MB);
    expect(await setting.keys()).toEqual(['history', 'inside', '{room:lock}:fence', '{warm-up}:fence']);
  }, 180_000);

  it('would be seen to be more, were there one permit too many for one of the processes', async () => {
    const { served, most, mostLogged } = await crowd([PERMITS, PERMITS, PERMITS, PERMITS + 1], CALLERS / 5);
    expect(served).toBe(CALLERS / 5);
    expect([most, mostLogged]).toEqual([PERMITS + 1, PERMITS + 1]);
  }, 180_000);
});
