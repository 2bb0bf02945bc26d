import type { RedisServer } from '../../../../support/redis-server.js';
import { fault, wide, type Fault, type Strike } from '../../../faults/fault.js';
import type { Scene } from '../../../run/scene.js';
import { adminOf } from '../admins.js';

/** Which server a fault strikes. */
export type Aim = (scene: Scene, strike: Strike) => RedisServer;

/** Faults of a server that loses nothing. */
export const serverFaults = (aim: Aim): Fault[] => [
  wide('server', 'server stopped', [50, 2_500], async (scene, strike) => {
    const server = aim(scene, strike);
    await server.pause();
    await scene.pause(strike.duration);
    await server.resume();
  }),
  wide('server', 'server sleeps', [50, 1_500], async (scene, strike) => {
    await adminOf(aim(scene, strike)).call('DEBUG', 'SLEEP', String(strike.duration / 1_000));
  }),
  paused(aim, 'server pauses writes', 'WRITE'),
  paused(aim, 'server pauses all', 'ALL'),
  command(aim, 'clients killed', ['CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes']),
  command(aim, 'subscribers killed', ['CLIENT', 'KILL', 'TYPE', 'pubsub']),
  command(aim, 'scripts forgotten', ['SCRIPT', 'FLUSH']),
  fault('server', 'somebody listens to all channels', [500, 4_000], async (scene, strike) => {
    const listener = aim(scene, strike).client();
    await listener.psubscribe('*');
    await scene.pause(strike.duration);
    listener.disconnect();
  }),
];

function paused(aim: Aim, name: string, what: 'WRITE' | 'ALL'): Fault {
  return wide('server', name, [50, 2_000], async (scene, strike) => {
    await adminOf(aim(scene, strike)).call('CLIENT', 'PAUSE', String(strike.duration), what);
    await scene.pause(strike.duration);
  });
}

function command(aim: Aim, name: string, words: [string, ...string[]]): Fault {
  return fault('server', name, [0, 0], async (scene, strike) => void (await adminOf(aim(scene, strike)).call(...words)));
}
