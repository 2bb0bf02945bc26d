import type { Redis } from 'ioredis';
import { redisStore, type RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { startRedis } from '../support/redis-server.js';
import { eventually } from '../support/eventually.js';
import { useRedis } from '../stores/redis/setting.js';
import { examined, type Examined } from './examined.js';
import { clockMovedBy, rewriting, startRewritingProxy, type Rewrite } from './rewriting-proxy.js';

const OWNER = 'shop@host:1:00000000-0000-4000-8000-000000000000';
const setting = useRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });

function store(options: Partial<RedisStoreOptions> = {}) {
  return redisStore({
    requestTimeout: 5000,
    options: { ...setting.server.connection, disconnectTimeout: 100 },
    ...options,
  });
}
const look = (): Promise<Examined> => examined(store());

async function behind(rewrite: Rewrite): Promise<Examined> {
  const proxy = await startRewritingProxy(() => setting.server.connection, rewrite);
  setting.finally(() => proxy.close());
  return examined(store({ options: proxy.connection }));
}

/** Until the test has ended. */
async function configure(name: string, value: string | number): Promise<void> {
  const [, before] = (await setting.redis.config('GET', name)) as [string, string];
  await setting.redis.config('SET', name, value);
  setting.finally(() => setting.redis.config('SET', name, before));
}

describe('the doctor of Redis', () => {
  it('finds nothing where all is well', async () => {
    const { notOk, verdict, checks, leastKeyTimeout } = await look();
    expect(notOk).toEqual([]);
    expect(checks).toHaveLength(21);
    expect(verdict).toEqual({
      efficiency: 'yes',
      correctness: 'yes',
      text: 'Efficiency: yes. Correctness: yes, and check the fencing token if you can.',
    });
    expect(leastKeyTimeout).toBeGreaterThanOrEqual(1000);
  });

  it('finds a policy that evicts, and that it has happened', async () => {
    await configure('maxmemory-policy', 'allkeys-lru');
    await configure('maxmemory', '3mb');
    for (let i = 0; Number(/evicted_keys:(\d+)/.exec(await setting.redis.info('stats'))?.[1]) === 0; i++) {
      await setting.redis.set(`filler:${i}`, 'x'.repeat(50_000));
    }
    setting.finally(() => setting.redis.config('RESETSTAT'));
    const { of, verdict } = await look();
    expect(of('eviction')).toMatchObject({ state: 'bad', seen: 'allkeys-lru', touches: ['G2'] });
    expect(of('evicted')).toMatchObject({ state: 'bad' });
    expect(of('memory')).toMatchObject({ state: 'warn' });
    expect(verdict.text).toBe(
      'Efficiency: no, because this Redis evicts locks when its memory is full (eviction) and this Redis has evicted keys (evicted). Correctness: no.',
    );
  });

  it.each([
    ['everysec', 'this Redis fsyncs every second'],
    ['no', 'this Redis leaves it to the system when to fsync'],
  ])('finds appendfsync %s', async (value, because) => {
    await configure('appendfsync', value);
    const { of, verdict } = await look();
    expect(of('persistence')).toMatchObject({ state: 'warn', seen: `appendfsync ${value}` });
    expect(verdict).toMatchObject({ efficiency: 'yes', correctness: 'token' });
    expect(verdict.text).toContain(`because ${because} (persistence).`);
  });

  it('finds a server that writes nothing, or snapshots only', async () => {
    await configure('appendonly', 'no');
    expect((await look()).of('persistence')).toMatchObject({ state: 'warn', seen: 'no append-only file, no snapshots' });
    await configure('save', '3600 1');
    expect((await look()).of('persistence')).toMatchObject({ state: 'warn', seen: 'no append-only file, snapshots (3600 1)' });
  });

  it('finds a disk that takes nothing', async () => {
    const { of, verdict } = await behind(
      rewriting('INFO', (text) => text.replace('aof_last_write_status:ok', 'aof_last_write_status:err')),
    );
    expect(of('persistence')).toMatchObject({ state: 'bad' });
    expect(verdict.correctness).toBe('token');
  });

  it('finds replicas, and a replica', async () => {
    const master = await startRedis({ port: 'free', args: ['--repl-diskless-sync-delay', '0'] });
    const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(master.port)] });
    setting.finally(() => Promise.all([master.stop(), replica.stop()]));
    const client = replica.client();
    await eventually(async () => expect(await client.info('replication')).toContain('master_link_status:up'));
    const ofMaster = await examined(store({ options: master.connection }));
    expect(ofMaster.of('replication')).toMatchObject({ state: 'warn' });
    expect(ofMaster.verdict.text).toBe(
      'Efficiency: yes. Correctness: only with the fencing token checked at the resource, because this Redis forgets locks when it restarts (persistence) and this Redis has replicas (replication).',
    );
    const ofReplica = await examined(store({ options: replica.connection }));
    expect(ofReplica.of('replication')).toMatchObject({ state: 'bad', seen: `a replica of 127.0.0.1:${master.port}` });
    expect(ofReplica.of('probe')).toMatchObject({ state: 'bad', seen: expect.stringContaining('READONLY') as string });
    expect(ofReplica.verdict).toMatchObject({ efficiency: 'no', correctness: 'no' });
  });

  it('finds two servers behind one address', async () => {
    const other = await startRedis();
    setting.finally(() => other.stop());
    const proxy = await startRewritingProxy((index) => [setting.server, other][index % 2]!.connection);
    setting.finally(() => proxy.close());
    const { of, verdict } = await examined(store({ options: proxy.connection }));
    expect(of('address')).toMatchObject({ state: 'bad', seen: expect.stringContaining('3 connections lead to 2 servers') as string });
    expect(verdict.efficiency).toBe('no');
  });

  it('finds a Cluster that is not complete, or not asked as one', async () => {
    const node = await startRedis({ port: 'free', args: ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'] });
    setting.finally(() => node.stop());
    const single = () => examined(store({ options: node.connection }));
    expect((await single()).of('cluster')).toMatchObject({ state: 'bad', seen: 'cluster_state fail' });
    await node.client().call('CLUSTER', 'ADDSLOTSRANGE', 0, 16383);
    await eventually(async () => expect(await node.client().call('CLUSTER', 'INFO')).toContain('cluster_state:ok'));
    expect((await single()).of('cluster')).toMatchObject({ state: 'bad', seen: 'one node of a Cluster, asked as a single server' });
    const { of } = await examined(store({ options: undefined, cluster: [node.connection as { host: string; port: number }] }));
    expect(of('cluster')).toMatchObject({ state: 'ok' });
    expect(of('wake-ups')).toMatchObject({ state: 'ok' });
    expect(of('address')).toMatchObject({ state: 'ok' });
    expect(of('probe')).toMatchObject({ state: 'ok' });
  });

  it('finds that the server stood still', async () => {
    // A script cannot wait for a time: from Redis 7.2 on the clock stands still for it.
    let rounds = 5_000_000;
    const busy = async (): Promise<number> => {
      const start = performance.now();
      await setting.redis.eval(`for i = 1, ${rounds} do end`, 0);
      return performance.now() - start;
    };
    while ((await busy()) < 200) rounds *= 2;
    expect((await look()).of('slow-scripts')).toMatchObject({
      state: 'warn',
      seen: expect.stringMatching(/^(1\d\d|[2-9]\d\d|\d,\d{3}) ms \(EVAL\)/) as string,
    });
    await setting.redis.call('SLOWLOG', 'RESET');
    await configure('latency-monitor-threshold', 100);
    await busy();
    await setting.redis.call('SLOWLOG', 'RESET');
    expect((await look()).of('slow-scripts')).toMatchObject({ state: 'warn', seen: expect.stringContaining('command') as string });
    await setting.redis.call('LATENCY', 'RESET');
    expect((await look()).of('slow-scripts')).toMatchObject({ state: 'ok' });
  });

  it.each([
    ['timeout', '300', 'idle-connections', 'timeout 300, tcp-keepalive 300'],
    ['tcp-keepalive', '0', 'idle-connections', 'timeout 0, tcp-keepalive 0'],
    ['client-output-buffer-limit', 'pubsub 1000 1000 60', 'pubsub-buffer', 'pubsub 1000 1000 60'],
  ])('finds a %s of %s', async (name, value, id, seen) => {
    await configure(name, value);
    expect((await look()).of(id)).toMatchObject({ state: 'warn', seen, touches: ['G8'] });
  });

  it('finds that there are few connections left', async () => {
    await configure('maxclients', 8);
    const others = await Promise.all(Array.from({ length: 5 }, async () => setting.client().ping()));
    expect(others).toHaveLength(5);
    const { of } = await examined(store(), { probe: false });
    expect(of('clients')).toMatchObject({ state: 'warn', seen: expect.stringMatching(/^[78] of 8$/) as string });
  });

  it('finds a server without a password that all may reach', async () => {
    await configure('bind', '127.0.0.1 0.0.0.0');
    expect((await look()).of('login')).toMatchObject({ state: 'ok' });
    await configure('protected-mode', 'no');
    expect((await look()).of('login')).toMatchObject({ state: 'warn', touches: ['security'] });
    await setting.redis.acl('SETUSER', 'default', '>secret', 'resetpass', '>secret');
    setting.finally(() => setting.redis.acl('SETUSER', 'default', 'nopass'));
    const { of } = await examined(store({ options: { ...setting.server.connection, password: 'secret' } }));
    expect(of('login')).toMatchObject({ state: 'ok' });
  });

  it.each([
    ['4.0.9', 'bad', 'Redis 4.0.9'],
    ['6.0.16', 'warn', 'Redis 6.0.16'],
    ['7.4.0\r\ndragonfly_version:1.2', 'warn', 'dragonfly 1.2'],
    ['7.2.4\r\nvalkey_version:8.0.1', 'ok', 'Valkey 8.0.1'],
  ])('judges the version %s as %s', async (version, state, seen) => {
    const { of } = await behind(
      rewriting('INFO', (text) => text.replace(/valkey_version:\S+\s+/, '').replace(/redis_version:\S+/, `redis_version:${version}`)),
    );
    expect(of('version')).toMatchObject({ state, seen });
  });

  it('finds slow requests, and names a keyTimeout that is long enough', async () => {
    const proxy = await setting.proxy();
    proxy.delay(110, 0, 'replies');
    const { of, leastKeyTimeout } = await examined(store({ options: proxy.connection }));
    expect(of('round-trips')).toMatchObject({ state: 'warn' });
    expect(leastKeyTimeout).toBeGreaterThanOrEqual(1100);
  });
});

describe('the clock of Redis', () => {
  it.each([-40_000, 40_000])('is seen to jump by %i ms', async (step) => {
    let asked = 0;
    const { of, verdict } = await behind(clockMovedBy(() => (++asked > 5 ? step : 0)));
    expect(of('clock')).toMatchObject({
      state: 'bad',
      seen: expect.stringMatching(step < 0 ? /^jumped by -(39|40),\d{3} ms in/ : /^jumped by (39|40),\d{3} ms in/) as string,
    });
    expect(verdict.efficiency).toBe('no');
  });

  it('is seen to run fast', async () => {
    const start = performance.now();
    const { of } = await behind(clockMovedBy(() => (performance.now() - start) * 0.5));
    expect(of('clock')).toMatchObject({ state: 'bad', seen: expect.stringMatching(/ ms fast in /) as string });
  });

  it('may be another one than ours', async () => {
    const { of } = await behind(clockMovedBy(() => -7000));
    expect(of('clock')).toMatchObject({ state: 'ok' });
    expect(of('clock-offset')).toMatchObject({ state: 'warn', seen: expect.stringContaining('behind this machine') as string });
  });

  it('is behind a fencing token that was given', async () => {
    const ahead = (Date.now() + 3_600_000) * 1000;
    await setting.redis.set('{order:1}:fence', ahead, 'PX', 60_000);
    const { of, verdict } = await look();
    expect(of('fences')).toMatchObject({ state: 'bad', seen: expect.stringContaining('order:1') as string });
    expect(verdict.efficiency).toBe('no');
    expect((await examined(store(), { namespace: 'other:' })).of('fences')).toMatchObject({ state: 'ok' });
  });
});

describe('keys on Redis', () => {
  const microseconds = (ago: number): number => (Date.now() - ago) * 1000;
  it.each<[string, string, (redis: Redis) => Promise<unknown>]>([
    [
      'never ends',
      'bad',
      async (redis) => {
        await redis.set('{k}:fence', microseconds(0), 'PX', 60_000);
        await redis.set('k', 'value of a recipe');
      },
    ],
    [
      'held for more than an hour',
      'warn',
      async (redis) => {
        await redis.set('{k}:fence', microseconds(2 * 3_600_000), 'PX', 60_000);
        await redis.set('k', OWNER, 'PX', 60_000);
      },
    ],
    [
      'only processes wait that are gone',
      'warn',
      (redis) => redis.zadd('{k}:queue', microseconds(0), `${OWNER}\nnestjs-distributed-lock:inbox:gone\n1000`),
    ],
  ])('%s: %s', async (words, state, make) => {
    await make(setting.redis);
    expect((await look()).of('keys')).toMatchObject({ state, seen: expect.stringContaining(`${words}: k`) as string });
  });

  it('are not made without the probe, and those of the probe are free', async () => {
    await examined(store(), { probe: false });
    expect(await setting.keys()).toEqual([]);
    await look();
    expect((await setting.keys()).filter((key) => !key.endsWith(':fence'))).toEqual([]);
  });
});
