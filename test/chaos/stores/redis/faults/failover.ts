import { eventually } from '../../../../support/eventually.js';
import type { Scene } from '../../../run/scene.js';
import { redisOf, type RedisStage } from '../stage.js';
import { wide, type Fault, type Strike } from '../../../faults/fault.js';
import { follow } from '../follow.js';

/** The replica becomes the master, and nothing is lost. The workers' address moves; what is open stays for a while, and is cut then. */
export const failoverFaults: Fault[] = [
  wide('failover', 'failover by FAILOVER', [0, 1_500], (scene, strike) => failover(scene, strike, byFailover)),
  wide('failover', 'failover by REPLICAOF', [0, 1_500], (scene, strike) => failover(scene, strike, byReplicaOf)),
  wide('takeover', 'the replica takes over without a word to the master, which then hangs', [0, 1_500], async (scene, { duration }) => {
    const stage = redisOf(scene);
    const { master, replica } = stage;
    await caughtUp(stage);
    await stage.admin(replica).call('REPLICAOF', 'NO', 'ONE');
    // What the old master writes now never reaches the new one, and is not acknowledged.
    await scene.pause(duration / 2);
    await master.pause();
    await scene.pause(duration / 2);
    stage.moveAddress();
    for (const proxy of stage.proxies) proxy.cut();
    stage.swap();
    await master.resume();
    await follow(master, replica!);
  }),
];

async function failover(scene: Scene, { duration, extent }: Strike, promote: (stage: RedisStage) => Promise<void>): Promise<void> {
  const stage = redisOf(scene);
  await caughtUp(stage);
  // The address may move a little before the promotion, or after it.
  if (extent < 0.3) stage.moveAddress();
  await promote(stage);
  stage.moveAddress();
  stage.swap();
  await scene.pause(duration);
  for (const proxy of stage.proxies) proxy.cut();
}

async function byFailover(stage: RedisStage): Promise<void> {
  const { replica } = stage;
  await stage.admin().call('FAILOVER', 'TO', '127.0.0.1', String(replica!.port));
  await eventually(async () => /role:master/.test(await stage.admin(replica).info('replication')), { within: 8_000 });
  await eventually(async () => /role:slave/.test(await stage.admin().info('replication')), { within: 8_000 });
}

/** Writes wait while the replica catches up, and the old master is none any more when they go on. */
async function byReplicaOf(stage: RedisStage): Promise<void> {
  const { master, replica } = stage;
  await stage.admin().call('CLIENT', 'PAUSE', '10000', 'WRITE');
  await caughtUp(stage);
  await stage.admin(replica).call('REPLICAOF', 'NO', 'ONE');
  await stage.admin(master).replicaof('127.0.0.1', replica!.port!);
  await stage.admin(master).call('CLIENT', 'UNPAUSE');
}

/** Resolves when the replica has all that the master has written so far. */
export async function caughtUp(stage: RedisStage): Promise<void> {
  await eventually(
    async () => {
      const [, offset] = /master_repl_offset:(\d+)/.exec(await stage.admin().info('replication')) ?? [];
      const replica = await stage.admin(stage.replica).info('replication');
      return /master_link_status:up/.test(replica) && Number(/slave_repl_offset:(\d+)/.exec(replica)?.[1]) >= Number(offset);
    },
    { within: 8_000 },
  );
}
