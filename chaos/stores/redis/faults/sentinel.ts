import { eventually } from '../../../../test/support/eventually.js';
import type { Fault } from '../../../faults/fault.js';
import { MASTER, type RedisStage } from '../stage.js';
import { caughtUp } from './failover.js';
import { redisOf } from './stage-of.js';

/**
 * A sentinel promotes the replica. The old master goes on until the sentinel has made it a replica, and what it is told meanwhile would be lost. So it
 * refuses all writes before (`min-replicas-to-write`), and the replica has heard of the earlier ones.
 */
export const sentinelFaults: Fault[] = [
  {
    name: 'failover by a sentinel',
    group: 'sentinel',
    isWide: true,
    duration: [0, 1_000],
    async strike(scene, { duration }) {
      const stage = redisOf(scene);
      await readyToFollow(stage);
      await stage.admin().config('SET', 'min-replicas-to-write', '9');
      await caughtUp(stage);
      await eventually(() => stage.admin(stage.sentinel).call('SENTINEL', 'FAILOVER', MASTER), { within: 20_000, every: 200 });
      await eventually(() => hasRole(stage, 'master'), { within: 15_000 });
      stage.swap();
      await scene.pause(duration);
    },
  },
  {
    name: 'clients killed behind a sentinel',
    group: 'sentinel',
    duration: [0, 0],
    strike: async (scene) => void (await redisOf(scene).admin().call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')),
  },
];

/** The sentinel makes the old master a replica some seconds after the failover; until then it must not take writes. */
async function readyToFollow(stage: RedisStage): Promise<void> {
  await eventually(() => hasRole(stage, 'slave'), { within: 20_000, every: 50 });
  await stage.admin(stage.replica).config('SET', 'min-replicas-to-write', '0');
}

async function hasRole(stage: RedisStage, role: 'master' | 'slave'): Promise<boolean> {
  return (await stage.admin(stage.replica).info('replication')).includes(`role:${role}`);
}
