import { serverClockJumps } from '../../../faults/clock.js';
import { wide, type Fault } from '../../../faults/fault.js';
import { failoverFaults } from './failover.js';
import { lossFaults, restartMaster } from './loss.js';
import { rightsFaults } from './rights.js';
import { sentinelFaults } from './sentinel.js';
import { serverFaults } from './server.js';
import { redisOf } from '../stage.js';

/** Faults of Redis servers. */
export const redisFaults: readonly Fault[] = [
  ...serverFaults((scene) => redisOf(scene).master),
  ...rightsFaults,
  wide('memory', 'memory full', [100, 3_000], async (scene, { duration }) => {
    const stage = redisOf(scene);
    await stage.onEach('CONFIG', 'SET', 'maxmemory', '1');
    await scene.pause(duration);
    await stage.onEach('CONFIG', 'SET', 'maxmemory', '0');
  }),
  // It comes back with all that it had answered for: `appendfsync always`.
  wide('restart', 'server killed and restarted', [0, 2_000], restartMaster),
  ...failoverFaults,
  ...sentinelFaults,
  serverClockJumps('clock-server', "the servers' wall clock jumps"),
  ...lossFaults,
];
