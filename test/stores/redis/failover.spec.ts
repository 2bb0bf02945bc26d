import type { Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { clientOf, useRedis } from './setting.js';

const KEY = 'order:42';

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

  async function follow(slave: RedisServer, master: RedisServer): Promise<void> {
    const redis = slave.client();
    await redis.replicaof('127.0.0.1', master.port!);
    await eventually(async () => expect(await redis.info('replication')).toMatch(/master_link_status:up/));
    redis.disconnect();
  }

  async function promote(next: RedisServer, old: RedisServer): Promise<void> {
    const redis = old.client();
    await redis.call('FAILOVER', 'TO', '127.0.0.1', String(next.port!));
    await eventually(async () => ((await redis.role()) as unknown as [string])[0] === 'slave', { every: 2 });
    redis.disconnect();
  }

  it('lets nobody run beside a holder, loses no update, and goes on (G1, G2, G8)', async () => {
    let [master, other] = [setting.server, replica];
    let inside = 0;
    let overlaps = 0;
    let last = 0;
    let sections = 0;
    async function section(locks: Locks): Promise<void> {
      await locks.using(
        KEY,
        async (lease) => {
          if (++inside > 1 || lease.fencingToken! <= last) overlaps++;
          last = lease.fencingToken!;
          await new Promise(setImmediate);
          lease.assertHeld();
          inside--;
          sections++;
        },
        { keyTimeout: 60_000, waitTimeout: 100_000, retryInterval: 500 },
      );
    }
    const goOn = (): Promise<unknown> => {
      const before = sections;
      return eventually(() => sections > before + 100);
    };
    // There, and back again.
    for (let round = 0; round < 2; round++) {
      await follow(other, master);
      // Every turn of a process is its last one, if others wait.
      const processes = Array.from({ length: 4 }, () =>
        setting.overIoredis({ options: master.connection, requestTimeout: 5_000 }, { localQueue: { handOvers: 1, time: 60_000 } }),
      );
      let isRunning = true;
      const callers = processes.flatMap((locks) =>
        [1, 2, 3].map(async () => {
          while (isRunning) await section(locks);
        }),
      );
      await goOn();
      const promoted = promote(other, master);
      for (const locks of processes) clientOf(locks).options.port = other.port!;
      await promoted;
      await goOn();
      isRunning = false;
      await Promise.all(callers);
      [master, other] = [other, master];
      await Promise.all(processes.map((locks) => locks.close()));
    }
    expect(overlaps).toBe(0);
    const redis = master.client();
    await eventually(async () => expect(await redis.keys('*')).toEqual([`{${KEY}}:fence`]));
    redis.disconnect();
  });
});
