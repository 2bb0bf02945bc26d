import { LockConfigError } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import * as five from 'redis';
import * as six from 'redis-v6';
import { overNodeRedis } from '../../../../lib/stores/redis/node-redis/node-redis.adapter.js';
import type { RedisClient } from '../../../../lib/stores/redis/connection/redis.client.js';
import { rejection } from '../../../support/rejection.js';
import { eventually } from '../../../support/eventually.js';
import { useRedis } from '../setting.js';

const setting = useRedis();
const { createClientPool, createCluster, createSentinel } = five;

describe.each([
  ['5', five.createClient],
  ['6', six.createClient as unknown as typeof five.createClient],
])('a connection of ours by node-redis %s', (_, createClient) => {
  const made = (socket: object = { path: setting.server.path!, tls: false }, connectTimeout = 5_000): RedisClient => {
    const connection = overNodeRedis(createClient({ socket }), connectTimeout);
    setting.finally(() => connection.disconnect());
    return connection;
  };

  it('emits close once if it was ready, from either side, and can be connected again', async () => {
    const proxy = await setting.proxy();
    const connection = made(proxy.connection);
    const breakOff = () => connection.disconnect(true);
    const cut = () => proxy.cut();
    for (const end of [cut, breakOff, cut, breakOff, breakOff, () => connection.disconnect()]) {
      await connection.connect();
      const closed = jest.fn();
      connection.on('close', closed);
      end();
      await eventually(() => connection.status === 'end');
      await new Promise(setImmediate);
      expect(closed).toHaveBeenCalledTimes(1);
      connection.off('close', closed);
    }
  });

  it('that the server never answers says that, not what node-redis stumbles over when it is broken off', async () => {
    await setting.server.pause();
    setting.finally(() => setting.server.resume());
    const errors: unknown[] = [];
    const proxy = await setting.proxy();
    const [late, broken] = [1_000, 60_000].map((connectTimeout) => made(proxy.connection, connectTimeout)) as [RedisClient, RedisClient];
    for (const connection of [late, broken]) connection.on('error', (error) => errors.push(error));
    await expect(late.connect()).rejects.toThrow('The server did not answer within 1000 ms.');
    const connecting = expect(broken.connect()).rejects.toThrow('The connection was broken off.');
    // It does nothing before there is a connection.
    await eventually(() => {
      broken.disconnect(true);
      return broken.status === 'end';
    });
    await connecting;
    expect(errors).toEqual([]);
    await eventually(() => expect(proxy.connections).toBe(0));
  });

  it('sends several requests in one write, in order, with their own errors, and none once it broke', async () => {
    const proxy = await setting.proxy();
    const connection = made(proxy.connection);
    await connection.connect();
    const pipeline = connection.pipeline();
    pipeline.eval("return redis.call('INCR', KEYS[1])", 1, 'count');
    pipeline.evalsha('0'.repeat(40), 1, 'count');
    pipeline.call('WAIT', 0, 10);
    const replies = await pipeline.exec();
    expect(replies!.map(([error, reply]) => error?.message.split(' ')[0] ?? reply)).toEqual([1, 'NOSCRIPT', 0]);
    // What the connection has not written by then is not sent over the next one.
    const late = rejection(connection.call('SET', 'late', '1'));
    process.nextTick(() => proxy.cut());
    expect(await late).toMatchObject({ message: expect.any(String) });
    await eventually(() => connection.status === 'end');
    await connection.connect();
    expect(await connection.call('EXISTS', 'late')).toBe(0);
  });

  it('leaves none behind where log-ins are refused while several callers ask (G7)', async () => {
    await setting.redis.acl('SETUSER', 'shop', 'on', '>right', '~*', '&*', '+@all');
    let password = 'wrong';
    const credentialsProvider = { type: 'async-credentials-provider', credentials: async () => ({ username: 'shop', password }) };
    const client = createClient({ socket: { path: setting.server.path!, tls: false }, credentialsProvider } as never);
    const connections = async () =>
      String(await setting.redis.client('LIST'))
        .trim()
        .split('\n').length;
    const before = await connections();
    const locks = setting.overIoredis({ client: client as never, requestTimeout: 2_000 });
    let isOver = false;
    const callers = [1, 2].map(async () => {
      while (!isOver) await locks.inspect('order:42').catch(() => undefined);
    });
    await eventually(async () => expect(await setting.redis.info('errorstats')).toMatch(/WRONGPASS:count=\d\d/));
    password = 'right';
    await eventually(() => locks.inspect('order:42'));
    expect(await connections()).toBeLessThanOrEqual(before + 2);
    isOver = true;
    await locks.close();
    await Promise.all(callers);
    await eventually(async () => expect(await connections()).toBe(before));
  });

  it('subscribes to no provider of credentials for longer than it takes to log in', async () => {
    const live = new Set<object>();
    const subscribe = async () => {
      const subscription = { dispose: () => live.delete(subscription) };
      live.add(subscription);
      return [{ username: 'default', password: undefined }, subscription];
    };
    const credentialsProvider = { type: 'streaming-credentials-provider', subscribe, onReAuthenticationError: () => undefined };
    const proxy = await setting.proxy();
    const connection = overNodeRedis(createClient({ socket: proxy.connection, credentialsProvider } as never), 5_000);
    setting.finally(() => connection.disconnect());
    for (let round = 0; round < 3; round++) {
      await connection.connect();
      expect(live.size).toBe(0);
      proxy.cut();
      await eventually(() => connection.status === 'end');
    }
  });
});

const TOO_OLD = 'redisStore: this version of redis is too old: version 5.1.0 or later is needed.';
const old = { evalSha: () => undefined, sendCommand: () => undefined };

it.each<[string, () => object, RegExp | string]>([
  ['a pool', () => createClientPool({ socket: { path: setting.server.path!, tls: false } }), /pool/],
  ['a cluster', () => createCluster({ rootNodes: [{}] }), 'install ioredis and give redisStore({ cluster: [{ host, port }] })'],
  [
    'a sentinel',
    () => createSentinel({ name: 'shop', sentinelRootNodes: [{ host: '127.0.0.1', port: 26379 }] }),
    'install ioredis and give redisStore({ sentinels, name })',
  ],
  ['a client of redis 4', () => ({ ...old, disconnect: () => undefined }), TOO_OLD],
  ['a client of redis 5.0', () => ({ ...old, destroy: () => undefined }), TOO_OLD],
  ['anything else', () => ({ get: () => undefined }), /ioredis or redis/],
])('%s is not taken for a client of node-redis', (_, make, message) => {
  const store = () => redisStore({ client: make() as never });
  expect(store).toThrow(LockConfigError);
  expect(store).toThrow(message);
  expect(() => redisStore(make() as never)).toThrow(LockConfigError);
});
