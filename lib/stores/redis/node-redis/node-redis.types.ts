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

export interface SentinelClient extends Common {
  getMasterNode(): unknown;
  /** Calls this with the client of the master, as often as that changes under it. */
  _execute<T>(isReadonly: false, use: (master: PlainClient) => Promise<T>): Promise<T>;
}

interface ClusterNode {
  /** As the other nodes call it. */
  readonly address: string;
  readonly client?: PlainClient;
}

export interface ClusterClient extends Common {
  readonly masters: readonly ClusterNode[];
  readonly replicas: readonly ClusterNode[];
  nodeClient(node: ClusterNode): Promise<PlainClient>;
  readonly _options?: {
    readonly rootNodes?: readonly { readonly url?: string; readonly socket?: Place }[];
    readonly nodeAddressMap?: AddressMap | ((address: string) => Place | undefined);
  };
}

export interface Place {
  readonly host: string;
  readonly port: number;
}
type AddressMap = Readonly<Record<string, Place>>;

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
