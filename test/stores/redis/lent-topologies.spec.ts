// A lent client of a Cluster, or for Sentinel, whose connections are half open: the servers answer over new ones.
import { Cluster, Redis } from 'ioredis';
import type { RedisClient } from 'nestjs-distributed-lock/redis';
import { eventually } from '../../support/eventually.js';
import { startSentinel } from '../../support/redis-sentinel.js';
import { useCluster } from './cluster.setting.js';
import { endOf, useRedis, type Setting } from './setting.js';
import { woken } from './waiting.js';

const patient = { ...woken, retryInterval: 100 };
const on = useCluster();
const single = useRedis({ port: 'free' });

interface Lent {
  client: RedisClient & { status: string };
  silence(): void;
  keys: string[];
  setting: Setting;
}

const addressOf = ({ port }: { port?: number }): string => `127.0.0.1:${port}`;

async function ofCluster(): Promise<Lent> {
  const { cluster, setting } = on;
  const proxies = await Promise.all(cluster.nodes.map((node) => setting.proxy(node.connection)));
  const natMap = Object.fromEntries(cluster.nodes.map((node, index) => [addressOf(node), proxies[index]!.connection]));
  const client = new Cluster(cluster.addresses, { natMap, redisOptions: { disconnectTimeout: 100 } });
  client.on('error', () => undefined);
  setting.finally(() => client.disconnect());
  return { client, silence: () => proxies.forEach((proxy) => proxy.silence()), keys: on.keys(), setting };
}

async function ofSentinel(): Promise<Lent> {
  const sentinel = await startSentinel({ name: 'main', master: single.server });
  const proxy = await single.proxy();
  const natMap = { [addressOf(single.server)]: proxy.connection };
  const client = new Redis({ sentinels: [{ host: '127.0.0.1', port: sentinel.port! }], name: 'main', natMap, disconnectTimeout: 100 });
  client.on('error', () => undefined);
  single.finally(async () => {
    client.disconnect();
    await sentinel.stop();
  });
  return { client, silence: () => proxy.silence(), keys: ['order:42'], setting: single };
}

it.each([
  ['of a Cluster', ofCluster],
  ['for Sentinel', ofSentinel],
])(
  'a lent client %s that goes silent three times is replaced: no lease is lost, and the next locks are granted (G4, G9)',
  async (_, make) => {
    const { client, silence, keys, setting } = await make();
    const logger = { warn: jest.fn(), error: jest.fn() };
    const locks = setting.overIoredis({ client, requestTimeout: 2_000 }, { logger });
    const lost = jest.fn();
    locks.on('lost', lost);
    const leases = await Promise.all(keys.map((key) => locks.acquire(key, { keyTimeout: 30_000 })));
    for (let round = 0; round < 3; round++) {
      silence();
      for (const key of keys) await locks.using(`${key}:next`, () => undefined, patient);
      for (const lease of leases) {
        const end = endOf(lease);
        await eventually(() => endOf(lease) > end + 100);
      }
    }
    for (const lease of leases) expect(await lease.release()).toBe(true);
    expect(lost).not.toHaveBeenCalled();
    const lines = logger.warn.mock.calls.map(([line]) => String(line)).filter((line) => line.includes('NDL_CLIENT_SILENT'));
    expect(lines).toHaveLength(1);
    await locks.close();
    expect(client.status).toBe('ready');
  },
);
