// What docs/count-down-latch.md says, on a real server.
import { Locks, LockAbortedError } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { eventually } from '../support/eventually.js';
import { NightlyImport } from './count-down-latch.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';

const setting = useRedisOfEnv();
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Another process, as far as the locks are concerned. */
function openLocks(): Locks {
  const locks = new Locks(redisStore({ url: setting.url }), { logger: false });
  ends.push(() => locks.close());
  return locks;
}

describe('the example', () => {
  const loaded: string[] = [];
  const instance = () => new NightlyImport(openLocks(), async (part) => void loaded.push(part));
  beforeEach(() => loaded.splice(0));

  it('reports when all parts are in, wherever they were loaded', async () => {
    const [one, other] = [instance(), instance()];
    expect(await one.begin('monday', ['a', 'b', 'c'])).toBe(true);
    expect(await other.begin('monday', ['a', 'b', 'c'])).toBe(false);
    const report = one.report('monday').then((text) => `${text} with ${loaded.join()}`);
    await eventually(async () => (await setting.redis.hkeys('import:monday')).some((field) => field.startsWith('waiter:')));
    await Promise.all([one.importPart('monday', 'a'), other.importPart('monday', 'b')]);
    await other.importPart('monday', 'c');
    expect((await report).split(' with ')).toEqual(['complete', expect.stringMatching(/^(a,b|b,a),c$/)]);
    const left = await setting.redis.pttl('import:monday');
    expect(left).toBeGreaterThan(3_500_000);
    expect(await instance().report('monday')).toBe('complete');
    expect(await one.begin('monday', ['d'])).toBe(true);
  });

  it('says what is missing when the latch is lost, and lets the caller go by its signal', async () => {
    const night = instance();
    await night.begin('tuesday', ['a', 'b']);
    const caller = new AbortController();
    const calledOff = night.report('tuesday', caller.signal).catch((error: unknown) => error);
    const report = instance().report('tuesday');
    await eventually(async () => (await setting.redis.hlen('import:tuesday')) === 3 + 1 + 2);
    caller.abort();
    expect(await calledOff).toBeInstanceOf(LockAbortedError);
    await setting.redis.pexpire('import:tuesday', 1);
    expect(await setting.redis.client('KILL', 'TYPE', 'PUBSUB')).toBeGreaterThan(0); // a waiter that reconnects asks at once
    expect(await report).toBe('given up: nothing came in for an hour');
  });
});
