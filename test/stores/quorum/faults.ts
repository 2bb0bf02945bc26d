import type { RedisServer } from '../../support/redis-server.js';
import { eventually } from '../../support/eventually.js';
import { long, type Setting } from './setting.js';

/** The fault strikes these servers, and they are mended with the test. */
async function strike({ servers, finally: atEnd }: Setting, hit: readonly number[], fault: 'kill' | 'pause'): Promise<void> {
  const mend = (server: RedisServer) => (fault === 'kill' ? server.restart() : server.resume());
  atEnd(() => Promise.all(hit.map((index) => mend(servers[index]!))));
  await Promise.all(hit.map((index) => servers[index]![fault]()));
}

/** What each minority of five servers is to stand. */
export function minoritiesMayFail(setting: Setting, minorities: readonly (readonly number[])[]): void {
  const cases = minorities.map((hit) => [hit] as const);

  it.each(cases)('that is killed (%j) stops no lock', async (hit) => {
    const [one, other] = [setting.open(), setting.open()];
    await strike(setting, hit, 'kill');
    await setting.expectLocksWork(one, other);
  });

  it.each(cases)('that hangs (%j) stops no lock', async (hit) => {
    const [one, other] = [setting.open(), setting.open()];
    await setting.expectLocksWork(one, other);
    await strike(setting, hit, 'pause');
    await setting.expectLocksWork(one, other);
  });

  it.each(cases)('that is emptied under a lease (%j) takes it from nobody, and gets it back', async (hit) => {
    const key = setting.newKey();
    const lease = await setting.open().acquire(key, long);
    await eventually(async () => expect(await setting.values(key)).toEqual(Array(5).fill(lease.owner)));
    await Promise.all(hit.map((index) => setting.servers[index]!.client().flushall()));
    expect(await setting.open().tryAcquire(key, long)).toBeNull();
    await eventually(async () => {
      await lease.renew();
      expect(await setting.values(key)).toEqual(Array(5).fill(lease.owner));
    });
    await lease.release();
    await eventually(async () => expect(await setting.values(key)).toEqual(Array(5).fill(null)));
  });
}
