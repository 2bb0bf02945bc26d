import { LockLostError, QuorumError, StoreError } from 'nestjs-distributed-lock/core';
import { eventually, staysTrue } from '../../support/eventually.js';
import { useQuorum } from './setting.js';

const setting = useQuorum(5);

it('a majority that hangs is no loss until the end of the lease, and then one', async () => {
  const lease = await setting.open().acquire(setting.newKey(), { keyTimeout: 2_000 });
  const end = performance.now() + lease.remaining();
  const away = setting.servers.slice(0, 3);
  setting.finally(() => Promise.all(away.map((server) => server.resume())));
  await Promise.all(away.map((server) => server.pause()));
  const aborted = new Promise<number>((resolve) => lease.signal.addEventListener('abort', () => resolve(performance.now())));
  expect(await aborted).toBeGreaterThan(end - 100);
  expect(() => lease.assertHeld()).toThrow(LockLostError);
});

it('a server that was started again, and is empty, does not vote within the quarantine: no second holder', async () => {
  const keyTimeout = 5_000;
  const quorum = { quarantine: keyTimeout, memberTimeout: 500 };
  const [locks, rival] = [setting.open(quorum), setting.open(quorum)];
  // All servers have been asked for long enough then.
  for (const each of [locks, rival]) await eventually(() => each.using(setting.newKey(), () => undefined, { keyTimeout }));
  const key = setting.newKey();
  const others = setting.servers.slice(3);
  await Promise.all(others.map((server) => server.pause()));
  const lease = await locks.acquire(key, { keyTimeout, renew: false });
  await setting.servers[2]!.restart();
  await Promise.all(others.map((server) => server.resume()));
  // What has come to the others meanwhile.
  await Promise.all(others.map((server) => server.client().flushall()));
  await staysTrue(async () => {
    const second = await rival.tryAcquire(key, { keyTimeout }).catch((error: unknown) => void expect(error).toBeInstanceOf(StoreError));
    if (!second) return;
    // Asked for before the end, and granted after it.
    expect(lease.remaining()).toBe(0);
    await second.release();
  }, lease.remaining());
  await (await rival.acquire(key, { keyTimeout, waitTimeout: 60_000, retryInterval: 100 })).release();
});

it('a lease outlives every server it was granted by, if two at a time are away', async () => {
  const lease = await setting.open().acquire(setting.newKey(), { keyTimeout: 10_000 });
  const rival = setting.open();
  for (let round = 0; round < 6; round++) {
    const away = [round % 5, (round + 2) % 5].map((index) => setting.servers[index]!);
    await Promise.all(away.map((server) => server.kill()));
    await lease.renew();
    const refusal = await rival.tryAcquire(lease.key).catch((error: unknown) => error);
    if (refusal !== null) expect(refusal).toBeInstanceOf(QuorumError);
    await Promise.all(away.map((server) => server.restart()));
    // It is given back to the servers by the renewals.
    await eventually(async () => {
      await lease.renew();
      expect(await setting.values(lease.key)).toEqual(Array(5).fill(lease.owner));
    });
  }
  expect(await lease.release()).toBe(true);
});
