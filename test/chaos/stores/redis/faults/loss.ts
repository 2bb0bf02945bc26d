import type { Scene } from '../../../run/scene.js';
import { follow } from '../follow.js';
import { keyAt } from '../../../worker/keys.js';
import { wide, type Fault, type Strike } from '../../../faults/fault.js';
import { redisOf } from '../stage.js';

/** The store forgets what was written. Then two may hold a key, and only the fencing token helps. */
export const lossFaults: Fault[] = [
  loss('FLUSHALL', async (scene) => void (await redisOf(scene).admin().flushall())),
  loss('lock key deleted', async (scene, { extent }) => {
    const name = keyAt(extent);
    await redisOf(scene).admin().del(name, `chaos:${name}`);
  }),
  loss('server restarted empty', restartMaster),
  loss('failover that loses writes', async (scene, { duration }) => {
    const stage = redisOf(scene);
    const { master, replica } = stage;
    await stage.admin(replica).call('REPLICAOF', 'NO', 'ONE');
    // What the old master writes now never reaches the new one.
    await scene.pause(duration);
    stage.moveAddress();
    for (const proxy of stage.proxies) proxy.cut();
    stage.swap();
    await follow(master, replica!);
  }),
];

function loss(name: string, strike: Fault['strike']): Fault {
  return wide('loss', name, [0, 800], strike);
}

/** What it still has then is a matter of its settings. */
export async function restartMaster(scene: Scene, { duration }: Strike): Promise<void> {
  const { master } = redisOf(scene);
  await master.kill();
  await scene.pause(duration);
  await master.restart();
}
