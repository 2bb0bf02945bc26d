import { eventually } from '../../support/eventually.js';
import { useQuorum } from './setting.js';

const setting = useQuorum(3);
const quorum = { quarantine: 0, memberTimeout: 300 };
const options = { keyTimeout: 2_500, waitTimeout: 30_000, retryInterval: 500 };

/** How many wait at a member. */
async function queuedAt(index: number, key: string): Promise<number> {
  const client = setting.servers[index]!.client();
  return client.zcard(`{${key}}:queue`).finally(() => client.disconnect());
}

it('two that wait at the heads of different members, since one of them took a member for dead, both get the key while the third member hangs', async () => {
  const [, , third] = setting.servers;
  const proxies = await setting.proxies();
  const [holder, other, one] = [setting.open(quorum), setting.open(quorum), setting.open(quorum, proxies.map(setting.store))];
  for (const locks of [holder, one, other]) await locks.using('warm-up', () => undefined, options);
  const key = setting.newKey();
  const lease = await holder.acquire(key, options);
  proxies[0]!.blackhole();
  const turns = [one.acquire(key, options)];
  await eventually(async () => (await queuedAt(1, key)) === 1 && (await queuedAt(0, key)) === 0);
  turns.push(other.acquire(key, options));
  await eventually(async () => (await queuedAt(0, key)) === 1 && (await queuedAt(1, key)) === 2);
  await third!.pause();
  setting.finally(() => third!.resume());
  await proxies[0]!.heal();
  await eventually(async () => (await queuedAt(0, key)) === 2);
  const start = performance.now();
  expect(await lease.release()).toBe(true);
  await Promise.all(turns.map(async (turn) => (await turn).release()));
  expect(performance.now() - start).toBeLessThan(5_000);
}, 60_000);
