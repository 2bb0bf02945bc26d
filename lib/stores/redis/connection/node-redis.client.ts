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
    readonly socket?: {
      readonly host?: string;
      readonly port?: number;
      readonly path?: string;
      readonly tls?: boolean;
      readonly connectTimeout?: number;
    };
  };
  /** How often it was connected. */
  readonly socketEpoch: number;
  sendCommand(args: readonly string[], options: object): Promise<unknown>;
  subscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>;
  unsubscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>;
  unref(): void;
  duplicate(overrides: object): PlainClient;
}
