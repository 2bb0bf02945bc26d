import { LockLostError, UnsupportedPrimitiveError } from 'nestjs-distributed-lock/core';
import { fencedSet, FencedError } from 'nestjs-distributed-lock/fence-guard';
import { startRedis, type RedisServer } from '../support/redis-server.js';

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

describe('fencedSet', () => {
  it('sets a key for the same holder and each later one, and refuses an older one', async () => {
    const redis = server.client();
    for (const [value, token] of [
      ['a', 1_700_000_000_000_010],
      ['b', 1_700_000_000_000_010],
      ['c', 2 ** 53 - 1],
    ] as const) {
      await fencedSet(redis, 'price', value, token);
      expect(await redis.get('price')).toBe(value);
    }
    const error = await fencedSet(redis, 'price', 'late', 2 ** 53 - 2).catch((error: unknown) => error as LockLostError);
    expect(error).toBeInstanceOf(LockLostError);
    expect(error).toMatchObject({ key: 'price', cause: { token: 2 ** 53 - 2, seen: String(2 ** 53 - 1) } });
    expect((error as LockLostError).cause).toBeInstanceOf(FencedError);
    expect(await redis.get('price')).toBe('c');
  });

  it('compares numbers, keeps any value as it is, and keeps the token in the slot of the key', async () => {
    const redis = server.client();
    const value = Buffer.from([0, 255, 13, 10, 39]);
    await fencedSet(redis, 'bytes', value, 9);
    await fencedSet(redis, 'bytes', value, 10);
    await expect(fencedSet(redis, 'bytes', value, 9)).rejects.toThrow(LockLostError);
    expect(await redis.getBuffer('bytes')).toEqual(value);
    await fencedSet(redis, 'order:{42}', 1, 1);
    expect(await redis.mget('{bytes}:fence', 'order:{42}:fence')).toEqual(['10', '1']);
  });

  it('refuses a lease without a token', async () => {
    await expect(fencedSet(server.client(), 'price', 'x', null)).rejects.toThrow(UnsupportedPrimitiveError);
  });
});
