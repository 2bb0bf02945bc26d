import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { forkChild } from './child.js';
import { eventually } from './eventually.js';
import { isAlive } from './is-alive.js';
import type { Started } from './redis-server.child.js';
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

describe('a private redis-server', () => {
  it('listens on a unix socket of its own', async () => {
    const [one, other] = await Promise.all([start(), start()]);
    await one.client().set('key', 'of one');
    expect(await other.client().get('key')).toBeNull();
    expect(one.port).toBeUndefined();
    expect(one.connection).toEqual({ path: one.path });
  });

  it('never takes the server of somebody else for its own', async () => {
    const { port } = await start({ port: 'free' });
    await expect(start({ port })).rejects.toThrow('Address already in use');
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
