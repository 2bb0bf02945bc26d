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

/** What is used of it. */
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

/** By its methods and not by its class: an app may have another copy of `redis` than this package. */
export function isNodeRedis(value: unknown): value is PlainClient {
  const { sendCommand, evalSha, destroy } = Object(value) as Partial<NodeRedisClient>;
  return [sendCommand, evalSha, destroy].every((method) => typeof method === 'function') && !isPool(value);
}

/** Over several connections requests would overtake each other. */
export function isPool(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'totalClients' in value;
}
