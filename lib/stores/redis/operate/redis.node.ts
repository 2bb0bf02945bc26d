import type { DoctorCheck } from '../../../core/model/doctor-report.js';
import type { RedisClient } from '../connection/redis.client.js';
import type { RedisConnection } from '../connection/redis.connection.js';
import { listOf } from '../scripts/redis.replies.js';
import { RedisInfo } from './redis.info.js';

/** One server, as the doctor asks it. Each method rejects with what the server says. */
export class RedisNode {
  private asked: Promise<RedisInfo> | undefined;

  /** @param node of a Cluster; `undefined`: the server of the connection. */
  constructor(
    readonly connection: RedisConnection,
    private readonly node?: RedisClient,
  ) {}

  /** Of a Cluster; `''`: the only one. */
  get name(): string {
    const { host, port } = Object(this.node?.options) as { host?: string; port?: number };
    return port === undefined ? '' : `${host}:${port}`;
  }

  call(command: string, ...args: (string | number)[]): Promise<unknown> {
    return this.connection.request((client) => (this.node ?? client).call(command, ...args));
  }

  info(): Promise<RedisInfo> {
    return (this.asked ??= this.call('INFO').then((text) => new RedisInfo(String(text))));
  }

  /** @throws also where the server has no such setting, or hides it. */
  async setting(name: string): Promise<string> {
    const [, value] = listOf(await this.call('CONFIG', 'GET', name));
    if (typeof value !== 'string') throw new Error(`CONFIG GET hides ${name}`);
    return value;
  }
}

/** The servers of a connection: of a Cluster all masters. */
export function nodesOf(connection: RedisConnection): RedisNode[] {
  const masters = connection.client.isCluster ? (connection.client.nodes?.('master') ?? []) : [];
  return masters.length === 0 ? [new RedisNode(connection)] : masters.map((node) => new RedisNode(connection, node));
}

const WORST = ['bad', 'unknown', 'warn', 'ok'] as const;

/** The worst of the same check of several servers. */
export function worstOf(checks: readonly DoctorCheck[], names: readonly string[]): DoctorCheck {
  const state = WORST.find((one) => checks.some((check) => check.state === one));
  const index = checks.findIndex((check) => check.state === state);
  const check = checks[index]!;
  const others = checks.length - checks.filter((one) => one.state === state).length;
  if (checks.length === 1) return check;
  return {
    ...check,
    seen:
      state === 'ok'
        ? `${check.seen}, as on all ${checks.length} masters`
        : `${names[index]}: ${check.seen} (${others} of ${checks.length} masters are better)`,
  };
}
