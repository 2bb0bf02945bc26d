import type { ReadWritePolicy } from 'nestjs-distributed-lock/core';
import { killSubscribers } from './waiting.js';
import type { RecordArgs, RecordMessage } from './record.child.js';
import { useRedis } from './setting.js';

const PROCESSES = 4;
const CALLS = 1_500;

describe('4 processes that read and write a record of two fields, one after the other, which nothing else guards', () => {
  const setting = useRedis();

  async function run(args: Omit<RecordArgs, 'connection' | 'callers' | 'calls'>, meanwhile?: () => Promise<unknown>) {
    const { connection } = setting.server;
    const given = { connection, callers: 6, calls: CALLS, ...args };
    const children = await Promise.all(Array.from({ length: PROCESSES }, () => setting.fork<RecordMessage>('record.child.ts', given)));
    await Promise.all(children.map((child) => child.waitFor('ready', { within: 30_000 })));
    for (const child of children) child.send({ type: 'go' });
    let isRunning = true;
    const trouble = (async () => {
      for (; meanwhile && isRunning; await new Promise((resolve) => setTimeout(resolve, 25))) await meanwhile();
    })();
    const ends = await Promise.all(children.map((child) => child.waitFor('done', { within: 90_000 })));
    isRunning = false;
    await trouble;
    const sum = (name: 'torn' | 'backwards' | 'lost') => ends.reduce((total, end) => total + end[name], 0);
    const record = await setting.redis.hgetall('record');
    return {
      torn: sum('torn'),
      backwards: sum('backwards'),
      lost: sum('lost'),
      mostReaders: Math.max(...ends.map(({ mostReaders }) => mostReaders)),
      one: Number(record.one),
      two: Number(record.two),
    };
  }
  const whole = (writeEvery: number) => {
    const writes = PROCESSES * Math.ceil(CALLS / writeEvery);
    return { torn: 0, backwards: 0, lost: 0, one: writes, two: writes };
  };

  it('see it torn and lose writes without a lock', async () => {
    const found = await run({ policy: 'fair', writeEvery: 10, guarded: false });
    expect(found.torn).toBeGreaterThan(0);
    expect(found.one).toBeLessThan(whole(10).one);
  }, 120_000);

  it.each<[ReadWritePolicy, number]>([
    ['fair', 10],
    ['fair', 2],
    ['readers', 10],
    ['writers', 10],
  ])(
    'never do with it, by the policy %p and one write in %d, and read together (G2)',
    async (policy, writeEvery) => {
      const { mostReaders, ...found } = await run({ policy, writeEvery, guarded: true });
      expect(found).toEqual(whole(writeEvery));
      expect(mostReaders).toBeGreaterThan(1);
      expect(await setting.keys('*:queue')).toEqual([]);
    },
    120_000,
  );

  it('nor when wake-ups get lost all the time (G2, G8)', async () => {
    const { mostReaders, ...found } = await run({ policy: 'fair', writeEvery: 10, guarded: true }, () => killSubscribers(setting));
    expect(found).toEqual(whole(10));
    expect(mostReaders).toBeGreaterThan(1);
  }, 120_000);
});
