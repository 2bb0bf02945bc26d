/** A client of the package `redis`, version 5 or 6: what `createClient` returns. */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  connect(): Promise<unknown>;
  sendCommand(...args: never[]): Promise<unknown>;
  evalSha(...args: never[]): Promise<unknown>;
  destroy(): unknown;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** The parts of it that are used. */
export interface PlainClient extends Omit<NodeRedisClient, 'sendCommand'> {
  /** Put before the keys of typed commands, and by us before those of ours. Only in version 6. */
  readonly _keyPrefix?: string;
  readonly isReady: boolean;
  readonly options?: {
    readonly database?: number;
    readonly socket?: { readonly host?: string; readonly port?: number; readonly connectTimeout?: number };
  };
  /** How often it was connected. Not in the first versions. */
  readonly socketEpoch?: number;
  sendCommand(args: readonly string[], options: object): Promise<unknown>;
  subscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>;
  unsubscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>;
  duplicate(overrides: object): PlainClient;
}

/** Looks at the methods and not at the class: an app may have another copy of `redis` than this package. */
export function isNodeRedis(value: unknown): value is PlainClient {
  const { sendCommand, evalSha, destroy } = Object(value) as Partial<NodeRedisClient>;
  return [sendCommand, evalSha, destroy].every((method) => typeof method === 'function');
}

/** Explains why this cannot be the client of a store; `undefined`: it can. By themselves, the others learn of a failover late and repeat requests. */
export function problemOf(client: unknown): string | undefined {
  const { evalsha, evalSha } = Object(client) as { evalsha?: unknown; evalSha?: unknown };
  if (typeof evalsha === 'function') return undefined;
  const has = (name: string): boolean => typeof client === 'object' && client !== null && name in client;
  if (has('totalClients')) return '"client" is a pool, in which requests overtake each other: pass a client of createClient()';
  if (isNodeRedis(client) && has('nodeClient'))
    return '"client" is a cluster of redis (node-redis): install ioredis and give redisStore({ cluster: [{ host, port }] })';
  if (isNodeRedis(client) && has('getMasterNode'))
    return '"client" is a sentinel of redis (node-redis): install ioredis and give redisStore({ sentinels, name })';
  if (isNodeRedis(client)) return undefined;
  if (typeof evalSha === 'function') return '"client" is of an old version of redis: version 5 or later is needed';
  return '"client" must be a client of ioredis or redis (node-redis)';
}
