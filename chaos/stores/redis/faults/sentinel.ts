import { eventually } from '../../../../test/support/eventually.js';
import { MASTER } from '../stage.js';
import { caughtUp } from './failover.js';
import type { Fault } from '../../../faults/fault.js';
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
      const { master, replica } = stage;
      await stage.admin(master).config('SET', 'min-replicas-to-write', '9');
      try {
        await caughtUp(stage);
        await eventually(() => stage.admin(stage.sentinel).call('SENTINEL', 'FAILOVER', MASTER), { within: 5_000, every: 100 });
        await eventually(async () => /role:master/.test(await stage.admin(replica).info('replication')), { within: 15_000 });
        await eventually(async () => /role:slave/.test(await stage.admin(master).info('replication')), { within: 15_000 });
        stage.swap();
      } finally {
        await stage.admin(master).config('SET', 'min-replicas-to-write', '0');
      }
      await scene.pause(duration);
    },
  },
  {
    name: 'clients killed, sentinel',
    group: 'sentinel',
    duration: [0, 0],
    strike: async (scene) => void (await redisOf(scene).admin().call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')),
  },
];
