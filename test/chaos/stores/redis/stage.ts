import type { Redis } from 'ioredis';
import { eventually } from '../../../support/eventually.js';
import type { RedisServer } from '../../../support/redis-server.js';
import type { TcpProxy } from '../../../support/tcp-proxy.js';
import { stageOf } from '../../faults/fault.js';
import type { Scene } from '../../run/scene.js';
import { adminOf } from './admins.js';
import { redisFaults } from './faults/all.js';
import { leftoversOf } from './leftovers.js';
import type { RedisTarget } from './worker.js';
import type { Leftover, Stage } from '../store.js';

/** The rights of the workers' user when no fault takes some away. */
export const ALL_RIGHTS = ['on', '>secret', 'allkeys', 'allchannels', '+@all'];
/** The master's name at the sentinel. */
export const MASTER = 'chaos';

export interface RedisStageParts {
  master: RedisServer;
  replica?: RedisServer;
  sentinel?: RedisServer;
  proxies: TcpProxy[];
  keyPrefix: string;
  replicaAcks: number;
  /** says by how many ms the clocks of the servers are wrong */
  setClock?: (ms: number) => void;
}

/** Redis servers, and a proxy for each worker before the one that is the master. */
export class RedisStage implements Stage {
  readonly faults = redisFaults;
  readonly change = 'evalsha';
  master: RedisServer;
  replica: RedisServer | undefined;
  readonly proxies: TcpProxy[];

  constructor(private readonly parts: RedisStageParts) {
    this.master = parts.master;
    this.replica = parts.replica;
    this.proxies = parts.proxies;
  }

  admin(server = this.master): Redis {
    return adminOf(server);
  }

  get sentinel(): RedisServer {
    return this.parts.sentinel!;
  }

  setClock(ms: number): void {
    this.parts.setClock?.(ms);
  }

  /** Asks all servers: ACLs and settings are not replicated. */
  async onEach(...command: [string, ...string[]]): Promise<void> {
    for (const server of [this.master, this.replica]) if (server) await this.admin(server).call(...command);
  }

  /** From now on new connections lead to the other server. */
  moveAddress(): void {
    for (const proxy of this.proxies) proxy.moveTo({ port: this.replica!.port! });
  }

  /** The replica has become the master. */
  swap(): void {
    [this.master, this.replica] = [this.replica!, this.master];
  }

  /** A master that a sentinel has failed over must not take writes before it is a replica. */
  async settle(): Promise<void> {
    const replica = this.admin(this.replica);
    await eventually(async () => (await replica.info('replication')).includes('role:slave'), { within: 30_000, every: 50 });
    await this.onEach('CONFIG', 'SET', 'min-replicas-to-write', '0');
  }

  target(slot: number): RedisTarget {
    const { keyPrefix, sentinel, replicaAcks } = this.parts;
    const options = { username: 'worker', password: 'secret', ...(keyPrefix === '' ? {} : { keyPrefix }) };
    if (!sentinel) return { connection: { ...this.proxies[slot]!.connection, ...options }, replicaAcks };
    return { connection: options, sentinels: { name: MASTER, sentinels: [{ host: '127.0.0.1', port: sentinel.port! }] } };
  }

  async heal(): Promise<void> {
    this.setClock(0);
    await this.master.resume();
    if (this.parts.sentinel) await this.settle();
  }

  async leftovers(pidsOfKilled: ReadonlySet<number>): Promise<Leftover[]> {
    return leftoversOf(this.admin(), pidsOfKilled);
  }

  async stop(): Promise<void> {
    await Promise.all([this.parts.sentinel?.stop(), this.replica?.stop(), this.master.stop()]);
  }
}

/** The stage of a fault that only Redis has. */
export const redisOf = (scene: Scene): RedisStage => stageOf(RedisStage, scene);
