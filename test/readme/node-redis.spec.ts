import { Locks } from 'nestjs-distributed-lock/core';
import { startRedis } from '../support/redis-server.js';
import { nodeRedisClient, storeOverNodeRedis } from './node-redis.js';

it('a store over node-redis locks, leaves its client open, and is usable after a break', async () => {
  const server = await startRedis({ port: 'free' });
  const client = nodeRedisClient(`redis://127.0.0.1:${server.port}`);
  const errors = jest.spyOn(console, 'error').mockImplementation();
  const locks = new Locks(storeOverNodeRedis(client), { logger: false });
  try {
    const lease = await locks.acquire('order:42', { keyTimeout: 10_000, waitTimeout: 0 });
    expect(await locks.tryAcquire('order:42')).toBeNull();
    expect(await lease.release()).toBe(true);
    const redis = server.client();
    await redis.client('KILL', 'TYPE', 'NORMAL' as never);
    redis.disconnect();
    expect(await locks.using('order:42', () => 'result', { keyTimeout: 10_000, waitTimeout: 10_000 })).toBe('result');
    await locks.close();
    expect(client.isOpen).toBe(true);
  } finally {
    await locks.close();
    if (client.isOpen) client.destroy();
    errors.mockRestore();
    await server.stop();
  }
});
