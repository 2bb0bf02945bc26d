import { eventually } from '../../../../support/eventually.js';
import { fault, wide, type Fault } from '../../../faults/fault.js';
import { MASTER, redisOf, type RedisStage } from '../stage.js';
import { caughtUp } from './failover.js';

/**
 * A sentinel promotes the replica. The old master goes on until the sentinel has made it a replica, and what is written there meanwhile would be lost. So it
 * refuses all writes before (`min-replicas-to-write`), and the replica has the earlier ones.
 */
export const sentinelFaults: Fault[] = [
  wide('sentinel', 'failover by a sentinel', [0, 1_000], async (scene, { duration }) => {
    const stage = redisOf(scene);
    await stage.settle();
    await eventually(() => isReady(stage), { within: 30_000, every: 50 });
    await eventually(() => promote(stage), { within: 30_000, every: 500 });
    await eventually(() => isMaster(stage), { within: 15_000 });
    stage.swap();
    await scene.pause(duration);
  }),
  fault('sentinel', 'clients killed behind a sentinel', [0, 0], async (scene) => {
    await redisOf(scene).admin().call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  }),
];

/** The sentinel knows of one master and of one replica that follows it. */
async function isReady(stage: RedisStage): Promise<boolean> {
  const sentinel = stage.admin(stage.sentinel);
  const [, flags] = fieldsOf((await sentinel.call('SENTINEL', 'MASTER', MASTER)) as string[]).find(([name]) => name === 'flags')!;
  const replicas = ((await sentinel.call('SENTINEL', 'REPLICAS', MASTER)) as string[][]).map((fields) => new Map(fieldsOf(fields)));
  const isFollowed = replicas.some((replica) => replica.get('flags') === 'slave' && replica.get('master-link-status') === 'ok');
  return flags === 'master' && isFollowed;
}

/** A sentinel that is not ready for it says so: then the master takes writes again until the next try. */
async function promote(stage: RedisStage): Promise<void> {
  await stage.admin().config('SET', 'min-replicas-to-write', '9');
  try {
    await caughtUp(stage);
    await stage.admin(stage.sentinel).call('SENTINEL', 'FAILOVER', MASTER);
  } catch (error) {
    await stage.admin().config('SET', 'min-replicas-to-write', '0');
    throw error;
  }
}

function fieldsOf(flat: readonly string[]): [string, string][] {
  return flat.flatMap((name, i): [string, string][] => (i % 2 === 0 ? [[name, flat[i + 1]!]] : []));
}

async function isMaster(stage: RedisStage): Promise<boolean> {
  return (await stage.admin(stage.replica).info('replication')).includes('role:master');
}
