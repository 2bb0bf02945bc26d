import { LockTimeoutError } from 'nestjs-distributed-lock/core';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';
import type * as Program from './without-nest.js';

describe('the engine without Nest', () => {
  let program: typeof Program;
  afterAll(() => program.shutDown());
  const setting = useRedisOfEnv(); // its server ends after the program

  beforeAll(async () => {
    program = await import('./without-nest.js');
  });

  it('runs work under a key, by itself, by a lease, and only where the key is free', async () => {
    const packed = '42 packed under number';
    await expect(program.ship('42')).resolves.toBe(packed);
    await expect(program.shipByLease('42')).resolves.toBe(packed);
    await expect(program.shipIfFree('42')).resolves.toBe(packed);
    expect(await setting.redis.keys('*')).toEqual(['{shop:order:42}:fence']);
  });

  it('waits, or says that somebody else is packing it', async () => {
    await setting.redis.set('shop:order:42', 'somebody else', 'PX', 30_000);
    await expect(program.shipIfFree('42')).resolves.toBe('somebody else is packing it');
    await expect(program.ship('42')).rejects.toThrow(LockTimeoutError);
  });

  it('gives nothing any more once it is shut down', async () => {
    await program.shutDown();
    await expect(program.ship('42')).rejects.toThrow('the locks are closed');
  });
});
