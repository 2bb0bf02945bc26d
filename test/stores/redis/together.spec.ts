import { LockConfigError, type ReadWritePolicy } from 'nestjs-distributed-lock/core';
import { type Child, forkChild } from '../../support/child.js';
import { eventually } from '../../support/eventually.js';
import { useRedis } from './setting.js';
import type { TogetherArgs, TogetherMessage } from './together.child.js';
import { killSubscribers } from './waiting.js';

const PROCESSES = 4;
const ACCOUNTS = ['anna', 'ben', 'cleo', 'dora', 'emil', 'fritz'];

describe('4 processes', () => {
  const setting = useRedis();
  jest.setTimeout(120_000);

  type Job = Omit<TogetherArgs, 'connection' | 'calls'> & { calls: number };

  const children: Child<TogetherMessage>[] = [];
  afterAll(() => Promise.all(children.map((child) => child.kill())));

  /** They are used again and again, but for those that were killed. */
  async function processes(): Promise<void> {
    const missing = Array.from({ length: PROCESSES - children.length }, () =>
      forkChild<TogetherMessage>('test/stores/redis/together.child.ts'),
    );
    const fresh = await Promise.all(missing);
    children.push(...fresh);
    await Promise.all(fresh.map((child) => child.waitFor('ready', { within: 60_000 })));
  }

  /** All of them together, and the sum of what they saw; `kills`: so many of them in the midst of it. */
  async function together(job: Job, { kills = 0, meanwhile = undefined as (() => Promise<unknown>) | undefined, odd = {} } = {}) {
    const { connection } = setting.server;
    await processes();
    for (const [index, child] of children.entries())
      child.send({ connection, ...job, calls: job.calls / PROCESSES, ...(index === 0 ? odd : {}) });
    for (const victim of children.splice(0, kills)) {
      await eventually(async () => (await setting.redis.keys('lock:*')).length > 0);
      await victim.kill();
    }
    let isRunning = true;
    const trouble = (async () => {
      for (; meanwhile && isRunning; await new Promise((resolve) => setTimeout(resolve, 25))) await meanwhile();
    })();
    const ends = await Promise.all(children.map((child) => child.waitFor('done', { within: 90_000 })));
    isRunning = false;
    await trouble;
    const sum = (name: 'wrong' | 'lost' | 'served') => ends.reduce((total, end) => total + end[name], 0);
    for (const { error } of ends) expect(error).toBeUndefined();
    expect(Math.max(...ends.map(({ rss }) => rss))).toBeLessThan(400 * 2 ** 20);
    return { wrong: sum('wrong'), lost: sum('lost'), served: sum('served'), most: Math.max(...ends.map(({ most }) => most)) };
  }

  describe('that add 10,000 to one counter, which nothing else guards', () => {
    const counting: Job = { job: 'counter', callers: 2, calls: 10_000, guarded: true };

    it('lose updates without a lock', async () => {
      await together({ ...counting, guarded: false });
      expect(Number(await setting.redis.get('counter'))).toBeLessThan(10_000);
    });

    it('lose none with it, never overlap, and see tokens that only grow (G2)', async () => {
      expect(await together(counting)).toMatchObject({ wrong: 0, lost: 0 });
      expect(await setting.redis.get('counter')).toBe('10000');
      const history = await setting.redis.lrange('history', 0, -1);
      expect(history).toHaveLength(20_000);
      let last = 0;
      for (let i = 0; i < history.length; i += 2) {
        const token = Number(history[i]!.slice('in '.length));
        if (history[i + 1] !== `out ${token}` || !(token > last)) throw new Error(`After ${last}: ${history.slice(i, i + 4).join(', ')}`);
        last = token;
      }
      expect(await setting.keys()).toEqual(['counter', 'history', '{count}:fence', '{warm-up}:fence']);
    });
  });

  describe('that read and write a record of two fields, which nothing else guards', () => {
    const CALLS = 2_000;
    const record = (guarded: boolean, policy: ReadWritePolicy = 'fair', writeEvery = 10): Job => ({
      job: 'record',
      callers: 6,
      calls: CALLS,
      guarded,
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

    it('see it torn without a lock', async () => {
      expect((await together(record(false))).wrong).toBeGreaterThan(0);
    });

    it.each<[ReadWritePolicy, number]>([
      ['fair', 10],
      ['fair', 2],
      ['readers', 10],
      ['writers', 10],
    ])('never do with it, by the policy %p and one write in %d, and read together (G2)', async (policy, writeEvery) => {
      await expectWhole(writeEvery, await together(record(true, policy, writeEvery)));
    });

    it('nor when wake-ups get lost all the time (G2, G8)', async () => {
      await expectWhole(10, await together(record(true), { meanwhile: () => killSubscribers(setting) }));
    });
  });

  describe('whose callers, all at once, want one of 10 permits', () => {
    const room = (calls: number): Job => ({ job: 'room', permits: 10, callers: calls / PROCESSES, calls, guarded: true });

    it('are all served, never more than 10 at a time, each with a token of its own (G2, G8)', async () => {
      expect(await together(room(10_000))).toEqual({ wrong: 0, lost: 0, served: 10_000, most: 10 });
      const history = (await setting.redis.lrange('history', 0, -1)).map((entry) => entry.split(' ') as ['in' | 'out', string]);
      let inside = 0;
      expect(Math.max(...history.map(([way]) => (inside += way === 'in' ? 1 : -1)))).toBe(10);
      expect(new Set(history.map(([, token]) => token)).size).toBe(10_000);
      expect(await setting.keys()).toEqual(['history', 'inside', '{room}:fence', '{warm-up}:fence']);
    });

    it('would be seen to be more, were there one permit too many for one of the processes', async () => {
      expect((await together(room(2_000), { odd: { permits: 11 } })).most).toBe(11);
    });
  });

  describe('that move money between 6 accounts, 2 to 4 at a time, in any order', () => {
    const moving: Job = { job: 'accounts', callers: 4, calls: 1_200, guarded: true };

    /** The accounts whose balance is not what was moved. */
    async function wrongAfter(job: Job, kills = 0): Promise<string[]> {
      await setting.redis.mset(Object.fromEntries(ACCOUNTS.map((account) => [account, 1_000_000])));
      await together(job, { kills });
      const moved = await setting.redis.mget(ACCOUNTS.map((account) => `moved:${account}`));
      const balances = await setting.redis.mget(ACCOUNTS);
      return ACCOUNTS.filter((_account, index) => Number(balances[index]) !== 1_000_000 + Number(moved[index]));
    }

    it('make or lose some without locks', async () => {
      expect(await wrongAfter({ ...moving, guarded: false })).not.toEqual([]);
    });

    it('never do with a multi-lock, and never wait for each other for ever', async () => {
      expect(await wrongAfter(moving)).toEqual([]);
      expect(await setting.keys('*lock:*')).toEqual(ACCOUNTS.map((account) => `{lock:${account}}:fence`));
    });

    it('go on when two of them are killed, whose keys come free when their leases run out (G8)', async () => {
      expect(await wrongAfter({ ...moving, keyTimeout: 1_000 }, 2)).toEqual([]);
    });
  });

  it('or one: a multi-lock of one key by two stores that lead to one server is refused as soon as it finds itself in its way, and gives everything back', async () => {
    const [one, other] = [setting.own(), setting.own()];
    const lock = one.multiLock(['before', one.mutex('key'), other.mutex('key')]);
    await expect(lock.acquire({ waitTimeout: Infinity })).rejects.toThrow(LockConfigError);
    await setting.own().multiLock(['before', 'key']).acquire({ waitTimeout: 5_000, keyTimeout: 60_000 });
  });
});
