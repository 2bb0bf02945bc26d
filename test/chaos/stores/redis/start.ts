import { startRedis, type RedisServer } from '../../../support/redis-server.js';
import { startSentinel } from '../../../support/redis-sentinel.js';
import { startClock } from '../../clock/clock.js';
import { startProxies } from '../proxies.js';
import { follow } from './follow.js';
import { ALL_RIGHTS, MASTER, RedisStage } from './stage.js';
import type { StageOptions } from '../store.js';

/** Starts what the groups of faults need, and no more. */
export async function startStage(options: StageOptions, replicaAcks = 0): Promise<RedisStage> {
  const needs = (...names: string[]): boolean => names.some((name) => options.groups.includes(name));
  const clock = needs('clock-server') ? await startClock() : undefined;
  const args = ['--enable-debug-command', 'yes', '--repl-diskless-sync-delay', '0'];
  args.push('--user', 'worker', ...ALL_RIGHTS);
  if (needs('restart')) args.push('--appendonly', 'yes', '--appendfsync', 'always');
  const start = (): Promise<RedisServer> => startRedis({ port: 'free', args, env: clock?.env });
  const master = await start();
  const replica = replicaAcks > 0 || needs('failover', 'sentinel', 'loss') ? await start() : undefined;
  if (replica) await follow(replica, master);
  const sentinel = needs('sentinel') ? await startSentinel({ name: MASTER, master, downAfter: 1_500 }) : undefined;
  // By itself it looks every ten seconds, so that one failover would last as long as the whole run.
  await sentinel?.client().call('SENTINEL', 'DEBUG', 'INFO-PERIOD', '300', 'PUBLISH-PERIOD', '300');
  const proxies = sentinel ? [] : await startProxies(options, () => master.port!);
  const keyPrefix = options.random.chance(0.4) ? 'chaos:' : '';
  return new RedisStage({ master, replica, sentinel, proxies, keyPrefix, setClock: clock?.set, replicaAcks });
}
