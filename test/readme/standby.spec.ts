import { Logger } from '@nestjs/common';
import { Locks } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { Database, main } from './standby.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';

describe('a preloaded standby', () => {
  const { PORT } = process.env;
  let locks: Locks;
  const setting = useRedisOfEnv();

  beforeEach(async () => {
    Logger.overrideLogger(false);
    process.env.PORT = String(await freePort());
    locks = new Locks(redisStore({ url: setting.url }));
  });
  afterEach(async () => {
    if (PORT === undefined) delete process.env.PORT;
    else process.env.PORT = PORT;
    await locks.close();
  });

  it('listens once it leads, writes with the token of its term, and ends by SIGTERM with the key given back', async () => {
    const stranger = (await locks.tryAcquire('orders-leader', { keyTimeout: 60_000 }))!;
    const listeners = process.listeners('SIGINT');
    const ended = main();
    await eventually(async () => (await setting.redis.keys('*orders-leader*:queue*')).length > 0); // it stands in line, preloaded
    const place = () => fetch(`http://127.0.0.1:${process.env.PORT}/orders`, { method: 'POST' });
    await expect(place()).rejects.toThrow('fetch failed');
    await stranger.release();
    const { status } = await eventually(place);
    const leader = await locks.leaderElection('orders').leader();
    expect([status, Database.rows]).toEqual([201, [{ order: 'an apple', token: leader!.fencingToken }]]);

    process.emit('SIGTERM');
    await ended;
    await expect(place()).rejects.toThrow('fetch failed');
    await expect(locks.leaderElection('orders').leader()).resolves.toBeNull();
    for (const added of process.listeners('SIGINT')) if (!listeners.includes(added)) process.off('SIGINT', added);
  });
});
