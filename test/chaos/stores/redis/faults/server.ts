import type { Fault, Group } from '../../../faults/fault.js';
import type { Aim } from './aim.js';

/** Faults of a server that loses nothing. */
export const serverFaults = (aim: Aim): Fault[] => [
  {
    name: 'server stopped',
    group: 'server',
    isWide: true,
    duration: [50, 2_500],
    async strike(scene, strike) {
      const { server } = aim(scene, strike);
      await server.pause();
      await scene.pause(strike.duration);
      await server.resume();
    },
  },
  {
    name: 'server sleeps',
    group: 'server',
    isWide: true,
    duration: [50, 1_500],
    strike: async (scene, strike) => void (await aim(scene, strike).admin.call('DEBUG', 'SLEEP', String(strike.duration / 1_000))),
  },
  {
    name: 'server pauses writes',
    group: 'server',
    isWide: true,
    duration: [50, 2_000],
    async strike(scene, strike) {
      await aim(scene, strike).admin.call('CLIENT', 'PAUSE', String(strike.duration), 'WRITE');
      await scene.pause(strike.duration);
    },
  },
  {
    name: 'server pauses all',
    group: 'server',
    isWide: true,
    duration: [50, 2_000],
    async strike(scene, strike) {
      await aim(scene, strike).admin.call('CLIENT', 'PAUSE', String(strike.duration), 'ALL');
      await scene.pause(strike.duration);
    },
  },
  command(aim, 'clients killed', ['CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes']),
  command(aim, 'subscribers killed', ['CLIENT', 'KILL', 'TYPE', 'pubsub']),
  command(aim, 'scripts forgotten', ['SCRIPT', 'FLUSH']),
  {
    name: 'somebody listens to all channels',
    group: 'server',
    duration: [500, 4_000],
    async strike(scene, strike) {
      const listener = aim(scene, strike).server.client();
      await listener.psubscribe('*');
      await scene.pause(strike.duration);
      listener.disconnect();
    },
  },
];

function command(aim: Aim, name: string, words: [string, ...string[]], group: Group = 'server'): Fault {
  return {
    name,
    group,
    duration: [0, 0],
    strike: async (scene, strike) => void (await aim(scene, strike).admin.call(...words)),
  };
}
