import { startRedis, type RedisServer } from '../../test/support/redis-server.js';
import { startSentinel } from '../../test/support/redis-sentinel.js';
import { eventually } from '../../test/support/eventually.js';
import { startProxy, type TcpProxy } from '../../test/support/tcp-proxy.js';
import { startClock } from '../clock/clock.js';
import { GROUPS } from '../faults/fault.js';
import { ALL_RIGHTS, MASTER, RedisStage } from './redis.stage.js';
import type { StageOptions } from './store.js';

export const groups: readonly string[] = GROUPS;

/** Starts what the groups of faults need, and no more. */
export async function startStage({ groups: wanted, slots, random }: StageOptions): Promise<RedisStage> {
  const needs = (...names: string[]): boolean => names.some((name) => wanted.includes(name));
  const clock = needs('clock-server') ? await startClock() : undefined;
  const args = ['--enable-debug-command', 'yes', '--repl-diskless-sync-delay', '0'];
  args.push('--user', 'worker', ...ALL_RIGHTS);
  if (needs('restart')) args.push('--appendonly', 'yes', '--appendfsync', 'always');
  const start = (): Promise<RedisServer> => startRedis({ port: 'free', args, env: clock?.env });
  const master = await start();
  const replica = needs('failover', 'sentinel', 'loss') ? await start() : undefined;
  if (replica) await follow(replica, master);
  const sentinel = needs('sentinel') ? await startSentinel({ name: MASTER, master, downAfter: 1_500 }) : undefined;
  const proxies: TcpProxy[] = [];
  for (let slot = 0; slot < slots && !sentinel; slot++) {
    const jitter = random.fork(`proxy ${slot}`);
    proxies.push(await startProxy({ port: master.port! }, () => jitter.next()));
  }
  const keyPrefix = random.chance(0.4) ? 'chaos:' : '';
  return new RedisStage({ master, replica, sentinel, proxies, keyPrefix, setClock: clock?.set });
}

/** Makes one server the replica of the other, and waits until it has all data. */
export async function follow(replica: RedisServer, master: RedisServer): Promise<void> {
  const client = replica.client();
  await client.replicaof('127.0.0.1', master.port!);
  await eventually(async () => /master_link_status:up/.test(await client.info('replication')), { within: 10_000 });
  client.disconnect();
}
