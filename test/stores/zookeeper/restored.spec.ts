// What processes know of a lease that they have not seen begin, and a server whose data of before come back.
import { Locks, type LockStore } from 'nestjs-distributed-lock/core';
import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { eventually, staysTrue } from '../../support/eventually.js';
import { startZookeeper, type ZookeeperServer } from '../../support/zookeeper-server.js';

let server: ZookeeperServer;
beforeAll(async () => {
  server = await startZookeeper();
});
afterAll(() => server.stop());

/** A process of its own: what stores at the same place of one process have seen, they have seen together. */
let processes = 0;
const another = (): string => Array.from({ length: ++processes }, () => server.connectionString).join();
const ttl = 3000;
/** A server starts in less. */
const longer = 10_000;

const opened: Locks[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((locks) => locks.close()));
});

function open(): Locks {
  const locks = new Locks(zookeeperStore({ connectionString: another(), requestTimeout: 10_000 }), { logger: false });
  opened.push(locks);
  return locks;
}

it('a key whose holder is gone is known to be free by a process that is as old, with the first look at it, and by no younger one', async () => {
  const stores: LockStore[] = [];
  const start = (): LockStore => {
    const store = zookeeperStore({ connectionString: another(), requestTimeout: 10_000 });
    stores.push(store);
    return store;
  };
  const isFree = async ({ mutex }: LockStore, key: string) => (await mutex.check({ key, owner: 'app@host:1:asks' })).state === 'free';
  const take = ({ mutex }: LockStore) => mutex.acquire({ key: 'cron', owner: `app@host:1:${stores.length}`, ttl, tokens: 1, queue: false });
  const witness = start();
  // Each tries once.
  const observers = Array.from({ length: 40 }, start);
  await Promise.all(observers.map((observer) => isFree(observer, 'another key')));
  expect(await take(start())).toMatchObject({ granted: true });
  await eventually(() => isFree(witness, 'cron'));
  expect(await take(start())).toMatchObject({ granted: false });
  await eventually(async () => (await take(observers.pop()!)).granted, { every: 500 });
  await Promise.all(stores.map((store) => store.close()));
});

it('a key is not granted twice when the data of before come back: a holder that is alive keeps it', async () => {
  const [holder, other] = [open(), open()];
  await (await other.acquire('warm')).release();
  const lease = await holder.acquire('order:42', { keyTimeout: longer });
  const copy = `${server.data}.copy`;
  await server.kill();
  execFileSync('cp', ['-a', server.data, copy]);
  await server.restart();
  // Renewed by writes that will be lost.
  const isKept = (): Promise<void> =>
    staysTrue(async () => {
      expect(await other.tryAcquire('order:42').catch(() => null)).toBeNull();
      expect(lease.signal.aborted).toBe(false);
    }, 1.2 * longer);
  await isKept();
  await server.kill();
  rmSync(server.data, { recursive: true });
  execFileSync('cp', ['-a', copy, server.data]);
  await server.restart();
  await isKept();
  expect(await lease.release()).toBe(true);
  await (await other.acquire('order:42')).release();
});
