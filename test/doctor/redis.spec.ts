import { redisStore, type RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { startCluster } from '../support/redis-cluster.js';
import { startRedis } from '../support/redis-server.js';
import { eventually } from '../support/eventually.js';
import { clientOf, useRedis } from '../stores/redis/setting.js';
import { canPrefix, nodeRedisClient } from '../support/redis-clients.js';
import { examined, startLines, type Examined } from './examined.js';

const setting = useRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });

function store(options: Partial<RedisStoreOptions> = {}) {
  return redisStore({
    requestTimeout: 5000,
    options: setting.server.connection,
    ...options,
  });
}
const look = (): Promise<Examined> => examined(store());
const containing = (text: string) => expect.stringContaining(text) as string;

/** Examines by a client that changes what the server answers to a command. */
async function behind<Reply>(command: string, change: (reply: Reply) => Reply): Promise<Examined> {
  const changed = store();
  const client = clientOf({ store: changed });
  const send = client.sendCommand.bind(client);
  client.sendCommand = (asked, ...rest) => {
    const reply = send(asked, ...rest) as Promise<unknown>;
    return asked.name.toLowerCase() === command ? reply.then((value) => change(value as Reply)) : reply;
  };
  return examined(changed);
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
      expect(checks).toHaveLength(8);
      expect(verdict).toEqual({
        efficiency: 'yes',
        correctness: 'yes',
        text: 'Efficiency: yes. Correctness: yes, and check the fencing token if you can.',
      });
      expect(leastKeyTimeout).toBeGreaterThanOrEqual(1000);
    }));

  it.each([
    ['maxmemory-policy allkeys-lru', 'eviction', 'bad', 'allkeys-lru', 'no', 'this Redis evicts locks when its memory is full'],
    ['appendfsync everysec', 'persistence', 'warn', 'appendfsync everysec', 'yes', 'this Redis fsyncs every second'],
    ['appendfsync no', 'persistence', 'warn', 'appendfsync no', 'yes', 'this Redis leaves it to the system when to fsync'],
    ['appendonly no', 'persistence', 'warn', 'no append-only file', 'yes', 'this Redis forgets locks when it restarts'],
  ])('finds %s', async (setting, id, state, seen, efficiency, because) => {
    const [name = '', value = ''] = setting.split(' ');
    await configure(name, value);
    const { of, verdict } = await look();
    expect(of(id)).toMatchObject({ state, seen, touches: ['G2'] });
    expect(verdict).toMatchObject({
      efficiency,
      correctness: efficiency === 'no' ? 'no' : 'token',
      text: containing(`because ${because} (${id}).`),
    });
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
    if (id === 'persistence') expect(verdict.correctness).toBe('token');
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
    expect(ofReplica.of('role')).toMatchObject({ state: 'bad', seen: `a replica of 127.0.0.1:${master.port}` });
    expect(ofReplica.of('probe')).toMatchObject({ state: 'bad', seen: containing('READONLY') });
    expect(ofReplica.verdict).toMatchObject({ efficiency: 'no', correctness: 'no' });
  });

  it('finds a node of a Cluster that is used as a single server, and examines a Cluster by its masters', async () => {
    const cluster = await startCluster({ masters: 2 });
    setting.finally(() => cluster.stop());
    const [first, second] = cluster.nodes as [(typeof cluster.nodes)[0], (typeof cluster.nodes)[0]];
    // A request for a key of the other node would find it, too.
    const client = first.client();
    const served = async (namespace: string) => client.exists(`${namespace}nestjs-distributed-lock:health`).then(() => true, () => false); // prettier-ignore
    let namespace = '';
    while (!(await served(namespace))) namespace += 'x';
    const single = await examined(store({ options: first.connection }), { namespace, probe: false });
    expect(single.of('role')).toMatchObject({ state: 'bad', seen: 'a node of a Cluster, used as a single server' });
    expect(single.verdict.efficiency).toBe('no');
    await second.client().config('SET', 'maxmemory-policy', 'allkeys-lru');
    await eventually(async () => {
      const { of } = await examined(store({ options: undefined, cluster: [first.connection as { host: string; port: number }] }));
      for (const id of ['role', 'wake-ups', 'probe']) expect([id, of(id).state]).toEqual([id, 'ok']);
      expect(of('location').seen).toMatch(/^at a Cluster of 2, 127\.0\.0\.1:\d+, 127\.0\.0\.1:\d+$/);
      expect(of('eviction')).toMatchObject({ state: 'bad', seen: `127.0.0.1:${second.port}: allkeys-lru` });
    });
  });

  it('names a keyTimeout that is long enough for slow requests', async () => {
    const proxy = await setting.proxy();
    proxy.delay(110, 0, 'replies');
    expect((await examined(store({ options: proxy.connection }))).leastKeyTimeout).toBeGreaterThanOrEqual(1100);
  });
});

it('an app says at its start where its locks are, which tells it from those that do not see them, and no password', async () => {
  const server = await startRedis({ port: 'free' });
  setting.finally(() => server.stop());
  await server.client().acl('SETUSER', 'shop', 'on', '>s3cret', '~*', '&*', '+@all');
  const at = `127.0.0.1:${server.port}`;
  const user = { username: 'shop', password: 's3cret' };
  const requestTimeout = 5000;
  const lines = async (options: RedisStoreOptions, namespace?: string) =>
    (await startLines(redisStore({ ...options, requestTimeout }), namespace)).join();
  expect(await lines({ url: `redis://shop:s3cret@${at}` })).toMatch(RegExp(`^(Redis|Valkey) [\\d.]+ at ${at}/0 answers in `));
  const url = `redis://${at}/1?username=shop&password=s3cret`;
  expect(await lines({ url }, 'shop:')).toMatch(RegExp(` at ${at}/1, namespace "shop:", answers in \\d+ ms; waiters are woken$`));
  const options = { host: '127.0.0.1', port: server.port!, db: 2, ...user };
  expect(await lines({ options: { ...options, keyPrefix: 'a:' } })).toContain(` at ${at}/2, keyPrefix "a:", answers in `);
  const client = server.client({ ...options, keyPrefix: 'b:', lazyConnect: true });
  expect(await lines({ client }, 'shop:')).toContain(` at ${at}/2, keyPrefix "b:", namespace "shop:", answers in `);
  const keyPrefix = canPrefix('c:') ? 'c:' : undefined;
  expect(await lines({ client: nodeRedisClient({ ...options, keyPrefix }) })).toContain(
    ` at ${at}/2${keyPrefix ? ', keyPrefix "c:",' : ''} answers in `,
  );
});

it('writes no key without the probe, and those of the probe are free', async () => {
  await examined(store(), { probe: false });
  expect(await setting.keys()).toEqual([]);
  await look();
  expect((await setting.keys()).filter((key) => !key.endsWith(':fence'))).toEqual([]);
});
