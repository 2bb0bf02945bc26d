import { eventually } from '../../support/eventually.js';
import type { CrowdArgs, CrowdMessage } from './crowd.child.js';
import { useRedis } from './setting.js';
import { placesOf, queued, woken } from './waiting.js';

const KEY = 'order:42';
/** How often a key may pass from one caller to the next in a process while another process waits. */
const TURNS = 32;
const setting = useRedis();

describe('many processes whose callers all want one key', () => {
  async function crowds(count: number, args: Omit<CrowdArgs, 'name' | 'connection' | 'key'>) {
    const { connection } = setting.server;
    const fork = (_: unknown, i: number) => setting.fork<CrowdMessage>('crowd.child.ts', { connection, key: KEY, name: `p${i}`, ...args });
    const children = await Promise.all(Array.from({ length: count }, fork));
    await Promise.all(children.map((child) => child.waitFor('ready')));
    return children;
  }

  /** Who got in, in order. */
  async function history() {
    const entries = await setting.redis.lrange('history', 0, -1);
    return entries.map((entry) => {
      const [name, token, owner] = entry.split(' ') as [string, string, string];
      return { name, token: Number(token), owner };
    });
  }

  /** Of scripts: what they do inside is no request. */
  async function requests(): Promise<number> {
    const stats = await setting.redis.info('commandstats');
    return [...stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)].reduce((sum, [, calls]) => sum + Number(calls), 0);
  }

  const runs = (names: readonly string[]): number[] => {
    const lengths: number[] = [];
    for (const [i, name] of names.entries()) {
      if (i > 0 && name === names[i - 1]) lengths[lengths.length - 1]!++;
      else lengths.push(1);
    }
    return lengths;
  };

  it('8 of 500 are all served, one at a time, with a request for every five of them at most (G2, G8)', async () => {
    const children = await crowds(8, { callers: 500 });
    await setting.redis.config('RESETSTAT');
    for (const child of children) child.send({ type: 'go' });
    const ends = await Promise.all(children.map((child) => child.waitFor('done')));
    expect(ends.map(({ served }) => served)).toEqual(Array.from({ length: 8 }, () => 500));
    expect(await setting.redis.get('counter')).toBe('4000');
    expect(await requests()).toBeLessThanOrEqual(0.2 * 4_000);

    const turns = await history();
    const tokens = turns.map(({ token }) => token);
    expect(tokens).toHaveLength(4_000);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    // While all wait, each gets its share: nobody has half done before another has begun.
    const half = turns.slice(0, 2_000).map(({ name }) => name);
    for (let i = 0; i < 8; i++) expect(half.filter((name) => name === `p${i}`).length).toBeGreaterThan(50);
    expect(Math.max(...runs(half).slice(8))).toBeLessThanOrEqual(TURNS);
    for (const { timers } of ends) expect(timers).toBe(0);
    const names = ['counter', 'history', ...Array.from({ length: 8 }, (_, i) => `{warm-up:p${i}}:fence`), `{${KEY}}:fence`];
    await eventually(async () => expect(await setting.keys()).toEqual(names.sort()));
  });

  it('4 of 25 with fair: true are served first come, first served', async () => {
    const holder = await setting.own().acquire(KEY, woken);
    const children = await crowds(4, { callers: 25, fair: true });
    for (const child of children) child.send({ type: 'go' });
    await queued(setting, KEY, 100);
    const places = await placesOf(setting, KEY);
    await holder.release();
    await Promise.all(children.map((child) => child.waitFor('done')));
    const served = (await history()).map(({ owner }) => owner);
    expect(served).toEqual(places.map((place) => place.split('\n')[0]));
    expect(await setting.redis.get('counter')).toBe('100');
  });
});
