import type { Redis } from 'ioredis';
import { startProxy, type TcpProxy } from '../../test/support/tcp-proxy.js';
import { startRedis, type RedisServer } from '../../test/support/redis-server.js';
import { leftoversOf } from './redis.leftovers.js';
import type { RedisPlace } from './redis.worker.js';
import type { Stage, StageOptions } from './store.js';

export const groups = ['process', 'net', 'server'];

/** The rights of the workers' user when no fault takes some away. */
export const ALL_RIGHTS = ['on', '>secret', '~*', '&*', '+@all'];

export async function startStage({ groups: wanted, slots, random }: StageOptions): Promise<RedisStage> {
  const persists = wanted.includes('restart');
  const args = ['--enable-debug-command', 'yes', ...(persists ? ['--appendonly', 'yes', '--appendfsync', 'always'] : [])];
  const server = await startRedis({ port: 'free', args });
  const proxies: TcpProxy[] = [];
  const stage = new RedisStage(server, proxies, random.chance(0.4) ? 'chaos:' : '');
  await stage.prepare(server);
  for (let slot = 0; slot < slots; slot++) {
    const jitter = random.fork(`proxy ${slot}`);
    proxies.push(await startProxy({ port: server.port! }, () => jitter.next()));
  }
  return stage;
}

export class RedisStage implements Stage {
  /** a connection of the controller's own, which no proxy stands before */
  admin: Redis;

  constructor(
    public server: RedisServer,
    readonly proxies: TcpProxy[],
    private readonly keyPrefix: string,
  ) {
    this.admin = server.client();
  }

  /** ACLs are not replicated: each server needs the user. */
  async prepare(server: RedisServer): Promise<void> {
    const client = server.client();
    await client.call('ACL', 'SETUSER', 'worker', ...ALL_RIGHTS);
    client.disconnect();
  }

  place(slot: number): RedisPlace {
    const { keyPrefix } = this;
    const login = { username: 'worker', password: 'secret' };
    return { connection: { ...this.proxies[slot]!.connection, ...login, ...(keyPrefix === '' ? {} : { keyPrefix }) } };
  }

  async heal(): Promise<void> {
    await this.server.resume();
    await Promise.all(this.proxies.map((proxy) => proxy.heal()));
  }

  async leftovers(pidsOfKilled: ReadonlySet<number>): Promise<string[]> {
    return leftoversOf(this.admin, pidsOfKilled);
  }

  async stop(): Promise<void> {
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
    await this.server.stop();
  }
}
