import type { Redis } from 'ioredis';
import type { Locks } from 'nestjs-distributed-lock/core';
import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../../support/eventually.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { useRedis } from './setting.js';

const KEY = 'order:42';
const ROUNDS = 6;

/**
 * A replica is promoted and loses nothing. Commands follow the address, which moves; Pub/Sub connections stay with the old master, to which the new
 * one replicates each PUBLISH.
 */
describe('a failover that loses nothing', () => {
  const setting = useRedis({ port: 'free' });
  let replica: RedisServer;

  beforeAll(async () => {
    replica = await startRedis({ port: 'free', args: ['--repl-diskless-sync-delay', '0'] });
  });
  afterAll(() => replica.stop());

  const portOf = (server: RedisServer): number => server.port!;
  const role = async (redis: Redis): Promise<string> => ((await redis.role()) as unknown as [string])[0];

  async function follow(slave: RedisServer, master: RedisServer): Promise<void> {
    const redis = slave.client();
    await redis.replicaof('127.0.0.1', portOf(master));
    await eventually(async () => expect(await redis.info('replication')).toMatch(/master_link_status:up/), { within: 10_000 });
    redis.disconnect();
  }

  /** Clients whose address is that of the master that was named last. */
  function movable(master: RedisServer): { client: () => Redis; moveTo: (server: RedisServer) => void } {
    const clients: Redis[] = [];
    return {
      client: () => {
        const client = setting.client({
          port: portOf(master),
          host: '127.0.0.1',
          reconnectOnError: (error) => /READONLY/.test(error.message),
        });
        clients.push(client);
        return client;
      },
      moveTo: (server) => clients.forEach(({ options }) => (options.port = portOf(server))),
    };
  }

  const ways: Record<string, (old: RedisServer, next: RedisServer) => Promise<void>> = {
    FAILOVER: async (old, next) => {
      const redis = old.client();
      await redis.call('FAILOVER', 'TO', '127.0.0.1', String(portOf(next)));
      await eventually(async () => (await role(redis)) === 'slave', { within: 10_000, every: 2 });
      redis.disconnect();
    },
    REPLICAOF: async (old, next) => {
      const [before, after] = [old.client(), next.client()];
      await before.call('CLIENT', 'PAUSE', '10000', 'WRITE');
      const offset = Number(/master_repl_offset:(\d+)/.exec(await before.info('replication'))?.[1]);
      await eventually(async () => Number(/slave_repl_offset:(\d+)/.exec(await after.info('replication'))?.[1]) >= offset, { every: 2 });
      await after.replicaof('NO', 'ONE');
      await before.replicaof('127.0.0.1', portOf(next));
      await before.call('CLIENT', 'UNPAUSE');
      before.disconnect();
      after.disconnect();
    },
  };

  it.each(Object.keys(ways))(
    'by %s lets nobody run beside a holder, loses no update, and goes on (G1, G2, G8)',
    async (way) => {
      let [master, other] = [setting.server, replica];
      let inside = 0;
      let overlaps = 0;
      let last = 0;
      let sections = 0;
      for (let round = 0; round < ROUNDS; round++) {
        await follow(other, master);
        const address = movable(master);
        // Every turn of a process is its last one, if others wait.
        const processes = Array.from({ length: 4 }, () =>
          setting.locks({ client: address.client() }, { localQueue: { handOvers: 1, time: 60_000 } }),
        );
        let isRunning = true;
        const section = async (locks: Locks): Promise<void> => {
          await locks.using(
            KEY,
            async (lease) => {
              if (++inside > 1) overlaps++;
              if (lease.fencingToken! <= last) overlaps++;
              last = lease.fencingToken!;
              await pause(1);
              lease.assertHeld();
              inside--;
              sections++;
            },
            { keyTimeout: 10_000, waitTimeout: 20_000, retryInterval: 500 },
          );
        };
        const callers = processes.flatMap((locks) =>
          [1, 2, 3].map(async () => {
            while (isRunning) await section(locks);
          }),
        );
        await pause(200);
        const before = sections;
        const promoted = ways[way]!(master, other);
        address.moveTo(other);
        await promoted;
        await eventually(() => sections > before + 100, { within: 10_000 });
        isRunning = false;
        await Promise.all(callers);
        [master, other] = [other, master];
        await Promise.all(processes.map((locks) => locks.close()));
      }
      expect(overlaps).toBe(0);
      const redis = master.client();
      await eventually(async () => expect(await redis.keys('*')).toEqual([`{${KEY}}:fence`]));
      redis.disconnect();
    },
    60_000,
  );
});
