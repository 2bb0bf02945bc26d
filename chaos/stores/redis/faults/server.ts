import type { Fault } from '../../../faults/fault.js';
import { redisOf } from './stage-of.js';

/** What happens to the server, without its losing anything. */
export const serverFaults: Fault[] = [
  {
    name: 'server stopped',
    group: 'server',
    isWide: true,
    duration: [50, 2_500],
    async strike(scene, { duration }) {
      const { master } = redisOf(scene);
      await master.pause();
      await scene.pause(duration);
      await master.resume();
    },
  },
  {
    name: 'server sleeps',
    group: 'server',
    isWide: true,
    duration: [50, 1_500],
    async strike(scene, { duration }) {
      await redisOf(scene)
        .admin()
        .call('DEBUG', 'SLEEP', String(duration / 1_000));
    },
  },
  {
    name: 'server pauses writes',
    group: 'server',
    isWide: true,
    duration: [50, 2_000],
    async strike(scene, { duration }) {
      await redisOf(scene).admin().call('CLIENT', 'PAUSE', String(duration), 'WRITE');
      await scene.pause(duration);
    },
  },
  {
    name: 'server pauses all',
    group: 'server',
    isWide: true,
    duration: [50, 2_000],
    async strike(scene, { duration }) {
      await redisOf(scene).admin().call('CLIENT', 'PAUSE', String(duration), 'ALL');
      await scene.pause(duration);
    },
  },
  command('clients killed', ['CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes']),
  command('subscribers killed', ['CLIENT', 'KILL', 'TYPE', 'pubsub']),
  command('scripts forgotten', ['SCRIPT', 'FLUSH']),
  {
    name: 'somebody listens to all channels',
    group: 'server',
    duration: [500, 4_000],
    async strike(scene, { duration }) {
      const listener = redisOf(scene).master.client();
      await listener.psubscribe('*');
      await scene.pause(duration);
      listener.disconnect();
    },
  },
];

function command(name: string, words: [string, ...string[]]): Fault {
  return {
    name,
    group: 'server',
    duration: [0, 0],
    strike: async (scene) =>
      void (await redisOf(scene)
        .admin()
        .call(...words)),
  };
}
