import type { ReadWritePolicy } from 'nestjs-distributed-lock/core';
import { type Child, forkChild } from '../../support/child.js';
import { eventually } from '../../support/eventually.js';
import type { CrowdArgs, CrowdMessage } from './crowd.child.js';
import { useRedis } from './setting.js';
import type { TogetherArgs, TogetherMessage } from './together.child.js';
import { killSubscribers, placesOf, queued, woken } from './waiting.js';

const KEY = 'order:42';
const PROCESSES = 4;
const ACCOUNTS = ['anna', 'ben', 'cleo', 'dora', 'emil', 'fritz'];
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

describe('4 processes', () => {
  type Job = Omit<TogetherArgs, 'connection'>;
  const children: Child<TogetherMessage>[] = [];
  afterAll(() => Promise.all(children.map((child) => child.kill())));

  /** They are used again and again, but for those that were killed. */
  async function processes(): Promise<void> {
    const missing = Array.from({ length: PROCESSES - children.length }, () =>
      forkChild<TogetherMessage>('test/stores/redis/together.child.ts'),
    );
    const fresh = await Promise.all(missing);
    children.push(...fresh);
    await Promise.all(fresh.map((child) => child.waitFor('ready')));
  }

  /** All of them together, and the sum of what they saw; `kills`: so many of them are killed meanwhile. */
  async function together(job: Job, { kills = 0, meanwhile = undefined as (() => Promise<unknown>) | undefined } = {}) {
    const { connection } = setting.server;
    await processes();
    for (const child of children) child.send({ connection, ...job, calls: job.calls / PROCESSES });
    for (const victim of children.splice(0, kills)) {
      await eventually(async () => (await setting.redis.keys('lock:*')).length > 0);
      await victim.kill();
    }
    let isRunning = true;
    const trouble = (async () => {
      while (meanwhile && isRunning) await meanwhile();
    })();
    const ends = await Promise.all(children.map((child) => child.waitFor('done')));
    isRunning = false;
    await trouble;
    const sum = (name: 'wrong' | 'lost' | 'served') => ends.reduce((total, end) => total + end[name], 0);
    for (const { error } of ends) expect(error).toBeUndefined();
    return { wrong: sum('wrong'), lost: sum('lost'), served: sum('served'), most: Math.max(...ends.map(({ most }) => most)) };
  }

  describe('that read and write a record of two fields, which nothing but a lock guards,', () => {
    const CALLS = 2_000;
    const record = (policy: ReadWritePolicy = 'fair', writeEvery = 10): Job => ({
      job: 'record',
      callers: 6,
      calls: CALLS,
      policy,
      writeEvery,
    });

    async function expectWhole(writeEvery: number, { most, ...found }: Awaited<ReturnType<typeof together>>): Promise<void> {
      expect(found).toEqual({ wrong: 0, lost: 0, served: CALLS });
      expect(most).toBeGreaterThan(1);
      const writes = String(CALLS / writeEvery);
      expect(await setting.redis.hgetall('record')).toEqual({ one: writes, two: writes });
      expect(await setting.keys('*:queue')).toEqual([]);
    }

    it.each<[ReadWritePolicy, number]>([
      ['fair', 10],
      ['fair', 2],
      ['readers', 10],
      ['writers', 10],
    ])('never see it torn, by the policy %p and one write in %d, and read together (G2)', async (policy, writeEvery) => {
      await expectWhole(writeEvery, await together(record(policy, writeEvery)));
    });

    it('never see it torn when wake-ups get lost again and again (G2, G8)', async () => {
      const written = async () => Number(await setting.redis.hget('record', 'one'));
      const meanwhile = async () => {
        const before = await written();
        await killSubscribers(setting);
        await eventually(async () => (await written()) >= Math.min(before + 2, CALLS / 10));
      };
      await expectWhole(10, await together(record(), { meanwhile }));
    });
  });

  it('whose callers, all at once, want one of 10 permits are all served, never more than 10 at a time, each with a token of its own (G2, G8)', async () => {
    const calls = 4_000;
    const found = await together({ job: 'room', permits: 10, callers: calls / PROCESSES, calls });
    expect(found).toEqual({ wrong: 0, lost: 0, served: calls, most: 10 });
    const history = (await setting.redis.lrange('history', 0, -1)).map((entry) => entry.split(' ') as ['in' | 'out', string]);
    let inside = 0;
    expect(Math.max(...history.map(([way]) => (inside += way === 'in' ? 1 : -1)))).toBe(10);
    expect(new Set(history.map(([, token]) => token)).size).toBe(calls);
    expect(await setting.keys()).toEqual(['history', 'inside', '{room}:fence', '{warm-up}:fence']);
  });

  it.each([
    ['', 0, 60_000],
    [', also when two of them are killed, whose keys come free when their leases run out (G8)', 2, 2_000],
  ])('that move money between 6 accounts, 2 to 4 at a time, in any order, lose none by a multi-lock%s', async (_, kills, keyTimeout) => {
    await setting.redis.mset(Object.fromEntries(ACCOUNTS.map((account) => [account, 1_000_000])));
    await together({ job: 'accounts', callers: 4, calls: 1_200, keyTimeout }, { kills });
    const moved = await setting.redis.mget(ACCOUNTS.map((account) => `moved:${account}`));
    const balances = await setting.redis.mget(ACCOUNTS);
    expect(balances.map(Number)).toEqual(moved.map((change) => 1_000_000 + Number(change)));
    if (kills === 0) expect(await setting.keys('*lock:*')).toEqual(ACCOUNTS.map((account) => `{lock:${account}}:fence`));
  });
});
