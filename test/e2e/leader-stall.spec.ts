import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { openInstance, readLedger, who, type Answer, type Entry, type Instance } from './leaders.js';
import { urlOf } from './shops.js';

const LEASE = 1_000;
/** So long that the leader is in the middle of a job whenever it is stopped. */
const JOB = 400;

describe('a leader that is stopped for longer than its lease', () => {
  let server: RedisServer;
  let redis: ReturnType<RedisServer['client']>;
  const instances: Instance[] = [];

  beforeAll(async () => {
    server = await startRedis();
    redis = server.client();
  });

  afterAll(async () => {
    await Promise.all(instances.map((instance) => instance.kill()));
    await server.stop();
  });

  const open = async () => {
    const env = { REDIS_URL: urlOf(server), SHOP_NAMESPACE: '', KEY_TIMEOUT_MS: LEASE, JOB_MS: JOB };
    const instance = await openInstance(await freePort(), env);
    instances.push(instance);
    return instance;
  };
  const leads = ({ port }: Instance): Promise<Answer> =>
    eventually(async () => (await who(port)) ?? Promise.reject(new Error('nobody answers')));
  const writes = (pid: number, accepted: boolean): Promise<Entry[]> =>
    readLedger(redis).then((entries) => entries.filter((entry) => entry.pid === pid && entry.accepted === accepted));

  it('finds its write refused, has stopped listening, and stands by anew with a container that leads later on', async () => {
    const stalled = await open();
    const before = await leads(stalled);
    const next = await open();
    const count = (await eventually(async () => {
      const written = await writes(stalled.pid, true);
      return written.length > 0 && written;
    })) as Entry[];
    // Right after a write: the next one is a job away.
    await eventually(async () => (await writes(stalled.pid, true)).length > count.length, { every: 5 });
    stalled.signal('SIGSTOP');
    const after = await leads(next);
    expect(after).toEqual({ pid: next.pid, token: expect.any(Number) });
    expect(after.token).toBeGreaterThan(before.token);
    await eventually(async () => (await writes(next.pid, true)).length > 0);
    expect(await writes(stalled.pid, false)).toEqual([]);

    stalled.signal('SIGCONT');
    const [refused] = (await eventually(async () => {
      const late = await writes(stalled.pid, false);
      return late.length > 0 && late;
    })) as Entry[];
    expect(refused!.token).toBe(before.token);
    await eventually(() => stalled.preloaded === 2);
    expect(await who(stalled.port)).toBeUndefined();
    expect((await who(next.port))?.pid).toBe(next.pid);

    await next.kill();
    const again = await leads(stalled);
    expect(again.pid).toBe(stalled.pid);
    expect(again.token).toBeGreaterThan(after.token);
    await eventually(async () => (await writes(stalled.pid, true)).some(({ token }) => token === again.token));
    expect(await writes(stalled.pid, false)).toHaveLength(1);
  });
});
