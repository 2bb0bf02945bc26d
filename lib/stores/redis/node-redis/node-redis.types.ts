/** A client, sentinel or cluster of the package `redis`, version 5 or 6: what `createClient`, `createSentinel` and `createCluster` return. */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  connect(): Promise<unknown>;
  sendCommand(...args: never[]): Promise<unknown>;
  evalSha(...args: never[]): Promise<unknown>;
  destroy(): unknown;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

interface Common extends Omit<NodeRedisClient, 'sendCommand'> {
  /** Put before the keys of typed commands, and by us before those of ours. Only in version 6. */
  readonly _keyPrefix?: string;
}

/** What is used of a client of one server. */
export interface PlainClient extends Common {
  readonly isReady: boolean;
  readonly options?: { readonly socket?: { readonly host?: string; readonly port?: number } };
  /** How often it was connected. Not in the first versions. */
  readonly socketEpoch?: number;
  sendCommand(args: readonly string[], options: object): Promise<unknown>;
  subscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>;
  unsubscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>;
  duplicate(overrides: object): PlainClient;
}

export interface SentinelClient extends Common {
  getMasterNode(): unknown;
  /** Calls this with the client of the master, as often as that changes under it. */
  _execute<T>(isReadonly: false, use: (master: PlainClient) => Promise<T>): Promise<T>;
}

export interface ClusterNode {
  readonly client?: PlainClient;
  /** While it connects for the first time. */
  readonly connectPromise?: Promise<PlainClient>;
}

export interface ClusterClient extends Common {
  readonly slots: readonly ({ readonly master: ClusterNode } | undefined)[];
  readonly masters: readonly ClusterNode[];
  readonly replicas: readonly ClusterNode[];
  sendCommand(key: string | undefined, isReadonly: false, args: readonly string[], options: object): Promise<unknown>;
  nodeClient(node: ClusterNode): Promise<PlainClient>;
  /** Asks this node for the topology. It does so by itself only when a node says that a key has moved. */
  readonly _slots?: { rediscover?(node: PlainClient): Promise<unknown> };
}

/** By its methods and not by its class: an app may have another copy of `redis` than this package. */
export function isNodeRedis(value: unknown): value is PlainClient | SentinelClient | ClusterClient {
  const { sendCommand, evalSha, destroy } = Object(value) as Partial<NodeRedisClient>;
  return [sendCommand, evalSha, destroy].every((method) => typeof method === 'function') && !isPool(value);
}

/** Over several connections requests would overtake each other. */
export function isPool(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'totalClients' in value;
}

export function isCluster(client: object): client is ClusterClient {
  return 'nodeClient' in client;
}

export function isSentinel(client: object): client is SentinelClient {
  return 'getMasterNode' in client;
}
