import { startClock } from '../../chaos/clock/clock.js';
import { patient, useQuorum } from './setting.js';

/** Milliseconds by which the clock of each server is wrong. */
const LEADS = [40_000, 0, -40_000];
const setting = useQuorum(3, async (index) => {
  const { env, set } = await startClock();
  set(LEADS[index]!);
  return { env };
});
const options = { keyTimeout: 30_000, waitTimeout: 60_000 };

it('the clocks of the servers are wrong', async () => {
  const times = await Promise.all(setting.servers.map(async (server) => Number((await server.client().time())[0])));
  const wrong = times.map((time) => time - times[1]!);
  expect(wrong[0]).toBeGreaterThan(38);
  expect(wrong[2]).toBeLessThan(-38);
});

it('tokens grow over changing majorities, and the key is excluded, though clocks differ by 80 s', async () => {
  const key = setting.newKey();
  const rival = setting.open();
  const tokens: number[] = [];
  for (let round = 0; round < 6; round++) {
    // An app of its own: it knows of no clock yet. Each pair of servers comes after each other one.
    const away = setting.servers[[0, 1, 2, 1, 0, 2][round]!]!;
    await away.pause();
    const locks = setting.open(patient);
    const lease = await locks.acquire(key, options);
    tokens.push(lease.fencingToken!);
    expect(await rival.tryAcquire(key, options)).toBeNull();
    await lease.renew();
    lease.assertHeld();
    // The one that was away has its answer to give before it may be asked by others.
    await away.resume();
    expect(await lease.release()).toBe(true);
    await locks.close();
  }
  expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
});

it('a lease lasts as long as it should wherever the clock of its server is, and no longer', async () => {
  const key = setting.newKey();
  const lease = await setting.open().acquire(key, { keyTimeout: 1_500, renew: false });
  const rival = setting.open();
  const next = await rival.acquire(key, { ...options, retryInterval: 50 });
  expect(lease.remaining()).toBe(0);
  expect(next.fencingToken!).toBeGreaterThan(lease.fencingToken!);
  await next.release();
});
