import { Locks, StoreError } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore } from 'nestjs-distributed-lock/redis';
import cron from 'node-cron';
import { forkChild } from '../support/child.js';
import { eventually } from '../support/eventually.js';
import { useRedis } from '../stores/redis/setting.js';
import { runCoordinator, scheduleDigest } from './node-cron-tasks.js';

const setting = useRedis();
const open = () => setting.own(undefined);

it('of three processes whose clocks differ by seconds, one runs each scheduled time of a short task, and the others skip it', async () => {
  const { connection } = setting.server;
  const children = await Promise.all(
    [-1_700, 0, 2_400].map((ahead) => forkChild('test/integrations/node-cron.child.ts', { args: [JSON.stringify({ connection, ahead })] })),
  );
  setting.finally(() => Promise.all(children.map((child) => child.kill())));
  const byTime = async () => {
    const times = new Map<string, string[]>();
    for (const line of await setting.redis.lrange('told', 0, -1)) {
      const [word = '', time = ''] = line.split(' ');
      times.set(time, [...(times.get(time) ?? []), word].sort());
    }
    return [...times.values()];
  };
  // On a busy machine, a process may miss a time.
  let all: string[][] = [];
  const complete = () => all.filter((words) => words.length === children.length);
  await eventually(async () => {
    all = await byTime();
    return complete().length >= 4;
  });
  for (const words of all) expect(words.filter((word) => word === 'run').length).toBeLessThan(2);
  for (const words of complete()) expect(words).toEqual(['not-elected', 'not-elected', 'run']);
});

it('a time that was given away stays so for its lease, also when the instance closes its locks, and the next one is free', async () => {
  const [one, other] = [open(), open()];
  const labels: unknown[] = [];
  one.on('acquired', ({ label }) => labels.push(label));
  const asked = (locks: Locks, time: string) => runCoordinator(locks).shouldRun(`digest:2026-11-26T18:00:${time}.000Z`, 60_000);
  expect(await asked(one, '00')).toBe(true);
  await one.close();
  expect([await asked(other, '00'), await asked(other, '01')]).toEqual([false, true]);
  expect(labels).toEqual(['digest']);
  expect(await setting.redis.pttl('node-cron:digest:2026-11-26T18:00:00.000Z')).toBeGreaterThan(30_000);
});

it('defaults of the locks do not apply to it', async () => {
  const locks = new Locks(memoryStore(), { logger: false, defaults: { minHold: 10, maxHold: 10_000 } });
  const asked = () => runCoordinator(locks).shouldRun('digest:2026-11-26T18:00:00.000Z', 60_000);
  expect([await asked(), await asked()]).toEqual([true, false]);
  await locks.close();
});

it('an outage is an error, and no answer: node-cron skips the time and logs why', async () => {
  const locks = new Locks(redisStore({ options: { path: '/nobody/listens/here.sock' }, requestTimeout: 2_000 }), { logger: false });
  const errors: unknown[] = [];
  const ignore = (): void => undefined;
  cron.setLogger({ info: ignore, warn: ignore, debug: ignore, error: (_line, error) => void errors.push(error) });
  const ran = jest.fn<void, []>();
  const reasons: unknown[] = [];
  const task = scheduleDigest(locks, () => ran());
  task.on('execution:skipped', ({ reason }) => void reasons.push(reason));
  try {
    await eventually(() => reasons.length > 0);
  } finally {
    await task.destroy();
    await locks.close();
  }
  expect(errors[0]).toBeInstanceOf(StoreError);
  expect([reasons[0], ran.mock.calls.length]).toEqual(['coordinator-error', 0]);
});
