type Listener = (...args: unknown[]) => void;

/**
 * What is used of an ioredis client, single, Sentinel or Cluster. By its methods and not by its class: an app may have another copy of
 * ioredis than this package.
 */
export interface RedisClient {
  /** `undefined`: a stand-in for tests, which is always ready. */
  readonly status?: string;
  readonly isCluster?: boolean;
  readonly options?: { readonly keyPrefix?: string; readonly db?: number; readonly host?: string; readonly port?: number };
  evalsha(sha: string, keyCount: number, ...keysAndArgs: (string | number)[]): Promise<unknown>;
  eval(script: string, keyCount: number, ...keysAndArgs: (string | number)[]): Promise<unknown>;
  /** A command that has no method here. */
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
  /** Of a Cluster: a client for each node of this role that is known. */
  nodes?(role: 'master' | 'slave'): RedisClient[];
  /** Of a Cluster: by slot, its master and replicas. */
  readonly slots?: readonly (readonly string[] | undefined)[];
  connect(): Promise<unknown>;
  quit(): Promise<unknown>;
  disconnect(reconnect?: boolean): void;
  /** Ends a connection that does not answer. ioredis does that by its `socketTimeout`. */
  breakOff?(): void;
  duplicate(override?: object): RedisClient;
  /** Commands that go in one write, over one connection: that of the first key on Cluster. */
  pipeline(): RedisPipeline;
  /** `undefined`: a stand-in for tests. */
  info?(): Promise<unknown>;
  publish(channel: string, message: string): Promise<unknown>;
  pubsub(subcommand: 'NUMSUB', channel: string): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  /** Ends what `subscribe` began. */
  unsubscribe(channel: string): Promise<unknown>;
  on(event: string, listener: Listener): unknown;
  off(event: string, listener: Listener): unknown;
}

/** Calls add a command; {@link exec} sends all of them and resolves to an error or a reply for each. */
export interface RedisPipeline extends Record<
  'evalsha' | 'eval',
  (script: string, keyCount: number, ...keysAndArgs: (string | number)[]) => unknown
> {
  call(command: string, ...args: (string | number)[]): unknown;
  exec(): Promise<[error: Error | null, reply: unknown][] | null>;
}

/**
 * Whether it has ended by itself: it had tried to connect again before. So does one of ioredis for Sentinel that learns of a failover while it connects.
 * One that its owner closes was connected then, or says that it is being closed.
 */
export function hasGivenUp(client: RedisClient): boolean {
  const { status, retryAttempts = 0, manuallyClosing } = client as { status?: string; retryAttempts?: number; manuallyClosing?: boolean };
  return status === 'end' && retryAttempts > 0 && !manuallyClosing;
}
