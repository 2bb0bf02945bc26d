import type { Redis } from 'ioredis';
import { redisStore, type RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { startRedis } from '../support/redis-server.js';
import { eventually } from '../support/eventually.js';
import { useRedis } from '../stores/redis/setting.js';
import { examined, type Examined } from './examined.js';

const OWNER = 'shop@host:1:00000000-0000-4000-8000-000000000000';
// On a busy machine any script may be slow.
const setting = useRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always', '--slowlog-log-slower-than', '-1'] });

function store(options: Partial<RedisStoreOptions> = {}) {
  return redisStore({
    requestTimeout: 5000,
    options: { ...setting.server.connection, disconnectTimeout: 100 },
    ...options,
  });
}
const look = (): Promise<Examined> => examined(store());
const containing = (text: string) => expect.stringContaining(text) as string;

/** Examines by a client that changes what the server answers to a command. */
async function behind<Reply>(command: string, change: (reply: Reply) => Reply): Promise<Examined> {
  const client = setting.client();
  const send = client.sendCommand.bind(client);
  client.sendCommand = (asked, ...rest) => {
    const reply = send(asked, ...rest) as Promise<unknown>;
    return asked.name.toLowerCase() === command ? reply.then((value) => change(value as Reply)) : reply;
  };
  return examined(store({ client, options: undefined }));
}

/** With a clock that is so many milliseconds ahead when it is read first, and later: five times each. */
function clockAhead(first: number, later = first): Promise<Examined> {
  let asked = 0;
  return behind<[string, string]>('time', ([seconds, microseconds]) => {
    const time = Number(seconds) * 1_000_000 + Number(microseconds) + (++asked > 5 ? later : first) * 1000;
    return [String(Math.floor(time / 1_000_000)), String(time % 1_000_000)];
  });
}

/** Until the test has ended. */
async function configure(name: string, value: string | number): Promise<void> {
  const [, before] = (await setting.redis.config('GET', name)) as [string, string];
  await setting.redis.config('SET', name, value);
  setting.finally(() => setting.redis.config('SET', name, before));
}

describe('the doctor of Redis', () => {
  it('finds nothing where all is well', () =>
    // A wake-up or an answer that is late on a busy machine is a finding.
    eventually(async () => {
      const { notOk, verdict, checks, leastKeyTimeout } = await look();
      expect(notOk).toEqual([]);
      expect(checks).toHaveLength(21);
      expect(verdict).toEqual({
        efficiency: 'yes',
        correctness: 'yes',
        text: 'Efficiency: yes. Correctness: yes, and check the fencing token if you can.',
      });
      expect(leastKeyTimeout).toBeGreaterThanOrEqual(1000);
    }));

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
    ['appendfsync everysec', 'persistence', 'appendfsync everysec', 'this Redis fsyncs every second'],
    ['appendfsync no', 'persistence', 'appendfsync no', 'this Redis leaves it to the system when to fsync'],
    ['appendonly no', 'persistence', 'no append-only file, no snapshots', 'this Redis forgets locks when it restarts'],
    ['appendonly no, save 3600 1', 'persistence', 'no append-only file, snapshots (3600 1)', ''],
    ['timeout 300', 'idle-connections', 'timeout 300, tcp-keepalive 300', ''],
    ['tcp-keepalive 0', 'idle-connections', 'timeout 0, tcp-keepalive 0', ''],
    ['client-output-buffer-limit pubsub 1000 1000 60', 'pubsub-buffer', 'pubsub 1000 1000 60', ''],
  ])('finds %s', async (settings, id, seen, because) => {
    for (const [, name = '', value = ''] of settings.matchAll(/([\w-]+) ([^,]+)(?:, )?/g)) await configure(name, value);
    const { of, verdict } = await look();
    expect(of(id)).toMatchObject({ state: 'warn', seen });
    if (id !== 'persistence') expect(of(id).touches).toEqual(['G8']);
    else expect(verdict).toMatchObject({ efficiency: 'yes', correctness: 'token' });
    if (because !== '') expect(verdict.text).toContain(`because ${because} (persistence).`);
  });

  it.each([
    ['a disk that takes nothing', /aof_last_write_status:ok/, 'aof_last_write_status:err', 'persistence', 'bad', ''],
    ['Redis 4.0', /redis_version:\S+/, 'redis_version:4.0.9', 'version', 'bad', 'Redis 4.0.9'],
    ['Redis 6.0', /redis_version:\S+/, 'redis_version:6.0.16', 'version', 'warn', 'Redis 6.0.16'],
    ['dragonfly', /redis_version:\S+/, 'redis_version:7.4.0\r\ndragonfly_version:1.2', 'version', 'warn', 'dragonfly 1.2'],
    ['Valkey 8', /redis_version:\S+/, 'redis_version:7.2.4\r\nvalkey_version:8.0.1', 'version', 'ok', 'Valkey 8.0.1'],
  ])('judges %s', async (_what, field, text, id, state, seen) => {
    const { of, verdict } = await behind<string>('info', (info) => info.replace(/valkey_version:\S+\s+/, '').replace(field, text));
    expect(of(id)).toMatchObject({ state, seen: containing(seen) });
    expect(verdict.correctness).toBe(id === 'persistence' ? 'token' : verdict.correctness);
  });

  it('finds replicas, and a replica', async () => {
    const master = await startRedis({ port: 'free', args: ['--repl-diskless-sync-delay', '0'] });
    const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(master.port)] });
    setting.finally(() => Promise.all([master.stop(), replica.stop()]));
    const client = replica.client();
    await eventually(async () => expect(await client.info('replication')).toContain('master_link_status:up'));
    const ofMaster = await examined(store({ options: master.connection }));
    const goesOn = { seen: containing('min-replicas-to-write 0') };
    expect(ofMaster.of('replication')).toMatchObject({ state: 'warn', ...goesOn });
    await master.client().config('SET', 'min-replicas-to-write', 1);
    const stops = await examined(store({ options: master.connection }));
    expect(stops.of('replication')).toMatchObject({ state: 'warn' });
    expect(stops.of('replication')).not.toMatchObject(goesOn);
    expect(ofMaster.verdict.text).toBe(
      'Efficiency: yes. Correctness: only with the fencing token checked at the resource, because this Redis forgets locks when it restarts (persistence) and this Redis has replicas (replication).',
    );
    const ofReplica = await examined(store({ options: replica.connection }));
    expect(ofReplica.of('replication')).toMatchObject({ state: 'bad', seen: `a replica of 127.0.0.1:${master.port}` });
    expect(ofReplica.of('probe')).toMatchObject({ state: 'bad', seen: containing('READONLY') });
    expect(ofReplica.verdict).toMatchObject({ efficiency: 'no', correctness: 'no' });
  });

  it('finds two servers behind one address', async () => {
    const other = await startRedis();
    setting.finally(() => other.stop());
    const client = setting.client();
    const duplicate = client.duplicate.bind(client);
    let connections = 0;
    client.duplicate = (options) => duplicate({ ...options, ...(++connections % 2 ? other : setting.server).connection });
    const { of, verdict } = await examined(store({ client, options: undefined }));
    expect(of('address')).toMatchObject({ state: 'bad', seen: containing('3 connections lead to 2 servers') });
    expect(verdict.efficiency).toBe('no');
  });

  it('does not wait for a connection that is accepted and never answered', async () => {
    const mute = createServer().listen(0, '127.0.0.1');
    await once(mute, 'listening');
    setting.finally(() => void mute.close());
    const proxy = await setting.proxy();
    const client = setting.client(proxy.connection);
    await client.ping();
    proxy.moveTo({ port: (mute.address() as AddressInfo).port });
    const { of } = await examined(store({ client, options: undefined, requestTimeout: 2_000 }));
    expect(of('address')).toMatchObject({ state: 'unknown', seen: containing('no answer within') });
  });

  it('finds a Cluster that is not complete, or not asked as one', async () => {
    const node = await startRedis({ port: 'free', args: ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'] });
    setting.finally(() => node.stop());
    const single = () => examined(store({ options: node.connection }));
    expect((await single()).of('cluster')).toMatchObject({ state: 'bad', seen: 'cluster_state fail' });
    await node.client().call('CLUSTER', 'ADDSLOTSRANGE', 0, 16383);
    await eventually(async () => expect(await node.client().call('CLUSTER', 'INFO')).toContain('cluster_state:ok'));
    expect((await single()).of('cluster')).toMatchObject({ state: 'bad', seen: 'one node of a Cluster, asked as a single server' });
    await eventually(async () => {
      const { of } = await examined(store({ options: undefined, cluster: [node.connection as { host: string; port: number }] }));
      for (const id of ['cluster', 'wake-ups', 'address', 'probe']) expect([id, of(id).state]).toEqual([id, 'ok']);
    });
  });

  it('finds that the server stood still', async () => {
    // A script cannot wait for a time: from Redis 7.2 on the clock stands still for it.
    let rounds = 2_500_000;
    const busyUntil = async (isSeen: () => Promise<boolean>): Promise<void> => {
      while (!(await isSeen())) await setting.redis.eval(`for i = 1, ${(rounds *= 2)} do end`, 0);
    };
    const slowest = async () => Math.max(0, ...((await setting.redis.slowlog('GET', 128)) as number[][]).map((entry) => entry[2]!));
    await configure('slowlog-log-slower-than', 10_000);
    await busyUntil(async () => (await slowest()) > 101_000);
    const seen = expect.stringMatching(/^[\d,]+ ms \(EVAL\)/) as string;
    expect((await look()).of('slow-scripts')).toMatchObject({ state: 'warn', seen });
    await configure('slowlog-log-slower-than', -1);
    await setting.redis.call('SLOWLOG', 'RESET');
    await configure('latency-monitor-threshold', 101);
    rounds /= 2;
    await busyUntil(async () => ((await setting.redis.call('LATENCY', 'LATEST')) as unknown[]).length > 0);
    expect((await look()).of('slow-scripts')).toMatchObject({ state: 'warn', seen: containing('command') });
    await configure('latency-monitor-threshold', 0);
    await setting.redis.call('LATENCY', 'RESET');
    expect((await look()).of('slow-scripts')).toMatchObject({ state: 'ok' });
  });

  it('finds that there are few connections left', async () => {
    await eventually(async () => expect(await setting.redis.info('clients')).toContain('connected_clients:1\r'));
    await configure('maxclients', 8);
    await Promise.all(Array.from({ length: 5 }, async () => setting.client().ping()));
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

  it('finds slow requests, and names a keyTimeout that is long enough', async () => {
    const proxy = await setting.proxy();
    proxy.delay(110, 0, 'replies');
    const { of, leastKeyTimeout } = await examined(store({ options: proxy.connection }));
    expect(of('round-trips')).toMatchObject({ state: 'warn' });
    expect(leastKeyTimeout).toBeGreaterThanOrEqual(1100);
  });
});

describe('the clock of Redis', () => {
  it.each([
    ['jump back', -40_000, /^jumped by -\d\d,\d{3} ms in/],
    ['jump forward', 40_000, /^jumped by \d\d,\d{3} ms in/],
    ['run fast', 450, / ms fast in /],
  ])('is seen to %s', async (_what, later, seen) => {
    const { of, verdict } = await clockAhead(0, later);
    expect(of('clock')).toMatchObject({ state: 'bad', seen: expect.stringMatching(seen) as string });
    expect(verdict.efficiency).toBe('no');
  });

  it('may be another one than ours', async () => {
    const { of } = await clockAhead(-60_000);
    expect(of('clock')).toMatchObject({ state: 'ok' });
    expect(of('clock-offset')).toMatchObject({ state: 'warn', seen: containing('behind this machine') });
  });

  it('is behind a fencing token that was given', async () => {
    const ahead = (Date.now() + 3_600_000) * 1000;
    await setting.redis.set('{order:1}:fence', ahead, 'PX', 60_000);
    const { of, verdict } = await look();
    expect(of('fences')).toMatchObject({ state: 'bad', seen: containing('order:1') });
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
    expect((await look()).of('keys')).toMatchObject({ state, seen: containing(`${words}: k`) });
  });

  it('are not made without the probe, and those of the probe are free', async () => {
    await examined(store(), { probe: false });
    expect(await setting.keys()).toEqual([]);
    await look();
    expect((await setting.keys()).filter((key) => !key.endsWith(':fence'))).toEqual([]);
  });
});
