import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { Cluster, Redis } from 'ioredis';
import { forkChild } from './child.js';
import { eventually } from './eventually.js';
import { startClusterNode } from './redis-cluster.js';
import type { Started } from './redis-server.child.js';
import { startSentinel } from './redis-sentinel.js';
import { startRedis, type RedisServer, type StartRedisOptions } from './redis-server.js';

const started: RedisServer[] = [];

afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.stop()));
});

async function start(options?: StartRedisOptions): Promise<RedisServer> {
  const server = await startRedis(options);
  started.push(server);
  return server;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe('a private redis-server', () => {
  it('listens on a unix socket of its own', async () => {
    const [one, other] = await Promise.all([start(), start()]);
    await one.client().set('key', 'of one');
    expect(await other.client().get('key')).toBeNull();
    expect(one.port).toBeUndefined();
    expect(one.connection).toEqual({ path: one.path });
  });

  it('listens on a free port when asked', async () => {
    const [one, other] = await Promise.all([start({ port: 'free' }), start({ port: 'free' })]);
    expect(one.port).not.toBe(other.port);
    expect(await one.client().info('server')).toContain(`process_id:${one.pid}`);
  });

  it('takes arguments and a password', async () => {
    const server = await start({ args: ['--maxmemory', '3mb'], password: 'secret' });
    expect(await server.client().config('GET', 'maxmemory')).toEqual(['maxmemory', String(3 * 1024 * 1024)]);
    await expect(server.client({ password: undefined }).get('key')).rejects.toThrow('NOAUTH');
  });

  it('says why it could not start', async () => {
    await expect(start({ args: ['--no-such-setting', '1'] })).rejects.toThrow('no-such-setting');
  });

  it('never takes the server of somebody else for its own', async () => {
    const { port } = await start({ port: 'free' });
    await expect(start({ port })).rejects.toThrow('Address already in use');
  });

  it('is gone when killed, and comes back empty at the same address', async () => {
    const server = await start({ port: 'free' });
    const client = server.client();
    await client.set('key', 'value');
    const { pid } = server;
    await server.kill();
    expect(isAlive(pid)).toBe(false);
    await expect(server.client({ retryStrategy: () => null, maxRetriesPerRequest: 0 }).ping()).rejects.toThrow();
    await server.restart();
    expect(server.pid).not.toBe(pid);
    expect(await client.get('key')).toBeNull();
  });

  it('answers nothing while paused, and everything once resumed', async () => {
    const server = await start();
    const client = server.client();
    await client.ping();
    await server.pause();
    let answered = false;
    const reply = client.incr('count').then((count) => {
      answered = true;
      return count;
    });
    await expect(server.client({ commandTimeout: 100 }).ping()).rejects.toThrow('timed out');
    expect(answered).toBe(false);
    await server.resume();
    expect(await reply).toBe(1);
  });

  it('leaves nothing behind when it is stopped, even when paused', async () => {
    const server = await start();
    const client = server.client();
    await client.ping();
    await server.pause();
    await server.stop();
    expect(isAlive(server.pid)).toBe(false);
    expect(existsSync(dirname(server.path!))).toBe(false);
    await eventually(() => client.status === 'end');
  });

  it.each(['running', 'paused'])('dies with the process that started it, when %s', async (state) => {
    const owner = await forkChild<Started>('test/support/redis-server.child.ts', { args: [state] });
    const { pid, path } = await owner.waitFor('started');
    expect(isAlive(pid)).toBe(true);
    await owner.kill('SIGKILL');
    await eventually(() => !isAlive(pid));
    await eventually(() => !existsSync(dirname(path)));
  });
});

describe('a cluster node', () => {
  it('owns every slot', async () => {
    const node = await startClusterNode();
    started.push(node);
    const cluster = new Cluster([{ host: '127.0.0.1', port: node.port! }]);
    expect(await Promise.all(['a', 'b', 'c'].map((key) => cluster.set(key, 1)))).toEqual(['OK', 'OK', 'OK']);
    cluster.disconnect();
  });
});

describe('a sentinel', () => {
  it('tells where the master is', async () => {
    const master = await start({ port: 'free' });
    const sentinel = await startSentinel({ name: 'main', master });
    started.push(sentinel);
    const client = new Redis({ sentinels: [{ host: '127.0.0.1', port: sentinel.port! }], name: 'main' });
    expect(await client.info('server')).toContain(`process_id:${master.pid}`);
    client.disconnect();
  });
});
