import type { Scene } from '../../../run/scene.js';
import { follow } from '../follow.js';
import { KEYS } from '../../../worker/keys.js';
import type { Fault, Strike } from '../../../faults/fault.js';
import { redisOf } from './stage-of.js';

/** The store forgets what was written. Then two may hold a key, and only the fencing token helps. */
export const lossFaults: Fault[] = [
  loss('FLUSHALL', async (scene) => void (await redisOf(scene).admin().flushall())),
  loss('lock key deleted', async (scene, { extent }) => {
    const names = Object.values(KEYS).flat();
    const name = names[Math.floor(extent * names.length)]!;
    const admin = redisOf(scene).admin();
    await admin.del(name, `chaos:${name}`);
  }),
  loss('server restarted empty', async (scene, { duration }) => {
    const { master } = redisOf(scene);
    await master.kill();
    await scene.pause(duration);
    await master.restart();
  }),
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

function loss(name: string, strike: (scene: Scene, strike: Strike) => Promise<void>): Fault {
  return { name, group: 'loss', isWide: true, duration: [0, 800], strike };
}
