/** A client or sentinel of the package `redis`, version 5 or 6: what `createClient` and `createSentinel` return. */
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

/** By its methods and not by its class: an app may have another copy of `redis` than this package. */
export function isNodeRedis(value: unknown): value is PlainClient | SentinelClient {
  const { sendCommand, evalSha, destroy } = Object(value) as Partial<NodeRedisClient>;
  return [sendCommand, evalSha, destroy].every((method) => typeof method === 'function') && !isPool(value) && !isCluster(value);
}

/** Over several connections requests would overtake each other. */
export function isPool(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'totalClients' in value;
}

/** It sends again by itself what a node did not answer, and keeps requests for a node that is away. */
export function isCluster(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'nodeClient' in value;
}

export function isSentinel(client: object): client is SentinelClient {
  return 'getMasterNode' in client;
}
