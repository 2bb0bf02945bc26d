import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../../support/eventually.js';
import type { CrowdArgs, CrowdMessage } from './crowd.child.js';
import { useRedis } from './setting.js';
import { queued, woken } from './waiting.js';

const KEY = 'order:42';
/** How often a key may pass from one caller to the next in a process while another process waits. */
const TURNS = 32;
const MB = 2 ** 20;

describe('many processes whose callers all want one key', () => {
  const setting = useRedis();

  async function crowds(count: number, args: Omit<CrowdArgs, 'name' | 'connection' | 'key'>) {
    const { connection } = setting.server;
    const fork = (_: unknown, i: number) => setting.fork<CrowdMessage>('crowd.child.ts', { connection, key: KEY, name: `p${i}`, ...args });
    const children = await Promise.all(Array.from({ length: count }, fork));
    await Promise.all(children.map((child) => child.waitFor('ready', { within: 60_000 })));
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

  it('8 of a thousand are all served, one at a time, with a request for every five of them at most (G2, G8)', async () => {
    const children = await crowds(8, { callers: 1_000 });
    await setting.redis.config('RESETSTAT');
    for (const child of children) child.send({ type: 'go' });
    const ends = await Promise.all(children.map((child) => child.waitFor('done', { within: 90_000 })));
    expect(ends.map(({ served }) => served)).toEqual(Array.from({ length: 8 }, () => 1_000));
    expect(await setting.redis.get('counter')).toBe('8000');
    expect(await requests()).toBeLessThanOrEqual(0.2 * 8_000);

    const turns = await history();
    const tokens = turns.map(({ token }) => token);
    expect(tokens).toHaveLength(8_000);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    // While all wait, each gets its share: nobody has half done before another has begun.
    const half = turns.slice(0, 4_000).map(({ name }) => name);
    for (let i = 0; i < 8; i++) expect(half.filter((name) => name === `p${i}`).length).toBeGreaterThan(100);
    expect(Math.max(...runs(half).slice(8))).toBeLessThanOrEqual(TURNS);
    for (const { rss, timers } of ends) {
      expect(rss).toBeLessThan(300 * MB);
      expect(timers).toBe(0);
    }
    const names = ['counter', 'history', ...Array.from({ length: 8 }, (_, i) => `{warm-up:p${i}}:fence`), `{${KEY}}:fence`];
    await eventually(async () => expect(await setting.keys()).toEqual(names.sort()));
  }, 150_000);

  it('4 of 25 with fair: true are served first come, first served', async () => {
    const holder = await setting.own().acquire(KEY, woken);
    const children = await crowds(4, { callers: 25, fair: true });
    for (const child of children) child.send({ type: 'go' });
    await queued(setting, KEY, 100);
    const places = await setting.redis.zrange(`{${KEY}}:queue`, '0', '-1');
    await holder.release();
    await Promise.all(children.map((child) => child.waitFor('done', { within: 60_000 })));
    const served = (await history()).map(({ owner }) => owner);
    expect(served).toEqual(places.map((place) => place.split('\n')[0]));
    expect(await setting.redis.get('counter')).toBe('100');
  }, 90_000);
});

describe('the classic recipe, SET key owner NX PX and compare-and-delete, while others queue', () => {
  const setting = useRedis();
  const DELETE = `return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0`;
  const take = async (owner: string) => (await setting.redis.set(KEY, owner, 'PX', 20_000, 'NX')) === 'OK';
  const give = (owner: string) => setting.redis.eval(DELETE, 1, KEY, owner);

  it('never breaks in, and has its chance when nobody queues any more (G2)', async () => {
    const stores = [setting.own(), setting.own(), setting.own()];
    let inside = 0;
    let most = 0;
    const section = async () => {
      most = Math.max(most, ++inside);
      await pause(1);
      inside--;
    };
    let ours = 0;
    const calls = Promise.all(Array.from({ length: 300 }, (_, i) => stores[i % 3]!.using(KEY, section, woken).then(() => ours++)));
    const turns: number[] = [];
    const stranger = (async () => {
      while (turns.length < 5) {
        if (!(await take('classic'))) continue;
        await section();
        turns.push(ours);
        expect(await give('classic')).toBe(1);
        await pause(1);
      }
    })();
    await Promise.all([calls, stranger]);
    expect(most).toBe(1);
    expect(ours).toBe(300);
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });
});
