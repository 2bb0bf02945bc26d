// What processes know of a lease that they have not seen begin, and a server whose data of before come back.
import { Locks } from 'nestjs-distributed-lock/core';
import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { startZookeeper, type ZookeeperServer } from '../../support/zookeeper-server.js';
import { pause } from '../../support/time.js';

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
  const locks = new Locks(zookeeperStore({ connectionString: another() }), { logger: false });
  opened.push(locks);
  return locks;
}

describe('a key whose holder is gone', () => {
  it('is known to be free by a process that has been up for longer, although it has never looked', async () => {
    const [observer, holder] = [1, 2].map(() => zookeeperStore({ connectionString: another() }));
    const request = { key: 'cron', owner: 'app@host:1:a', ttl, tokens: 1, queue: false };
    await observer!.mutex.check({ key: 'other', owner: 'me' });
    expect(await holder!.mutex.acquire(request)).toMatchObject({ granted: true });
    await pause(ttl + 1500);
    expect(await observer!.mutex.acquire({ ...request, owner: 'app@host:2:b' })).toMatchObject({ granted: true });
    const young = zookeeperStore({ connectionString: another() });
    expect(await young.mutex.acquire({ ...request, owner: 'app@host:3:c' })).toMatchObject({ granted: false });
    await Promise.all([observer, holder, young].map((store) => store!.close()));
  });
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
  const isKept = async (): Promise<void> => {
    for (const end = performance.now() + 1.2 * longer; performance.now() < end; await pause(200)) {
      expect(await other.tryAcquire('order:42').catch(() => null)).toBeNull();
      expect(lease.signal.aborted).toBe(false);
    }
  };
  await isKept();
  await server.kill();
  rmSync(server.data, { recursive: true });
  execFileSync('cp', ['-a', copy, server.data]);
  await server.restart();
  await isKept();
  expect(await lease.release()).toBe(true);
  await (await other.acquire('order:42')).release();
});
