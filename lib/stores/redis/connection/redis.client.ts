type Listener = (...args: unknown[]) => void;

/** The used options of an ioredis client. */
export interface ClientOptions {
  readonly keyPrefix?: string | undefined;
  readonly db?: number | undefined;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  /** The Unix socket. */
  readonly path?: string | null | undefined;
  readonly tls?: unknown;
  readonly sentinels?: readonly ClientOptions[] | null | undefined;
  /** The master's name at the sentinels. */
  readonly name?: string | undefined;
}

/**
 * The used part of an ioredis client, single, Sentinel or Cluster. It is known by its methods and not by its class: an app may have another copy of ioredis
 * than this package.
 */
export interface RedisClient {
  readonly status: string;
  /** The socket of ioredis. */
  readonly stream?: {
    readonly writable?: boolean;
    /** Lets the process end. */
    readonly unref?: () => unknown;
  };
  /** `select`: the database that ioredis has chosen; while it connects again, in the previous one. */
  readonly condition?: { readonly select?: number } | null;
  readonly prevCondition?: { readonly select?: number } | null;
  readonly isCluster?: boolean;
  readonly options: ClientOptions;
  evalsha(sha: string, keyCount: number, ...keysAndArgs: (string | number)[]): Promise<unknown>;
  eval(script: string, keyCount: number, ...keysAndArgs: (string | number)[]): Promise<unknown>;
  /** A command that has no method here. */
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
  /** A Cluster's known nodes of this role, a client for each. */
  nodes?(role: 'master' | 'slave'): RedisClient[];
  /** A Cluster's nodes by slot: the master, then its replicas. */
  readonly slots?: readonly (readonly string[] | undefined)[];
  connect(): Promise<unknown>;
  quit(): Promise<unknown>;
  /** @param reconnect end this connection only. */
  disconnect(reconnect?: boolean): void;
  /** A Cluster takes its nodes first. */
  duplicate(override?: object, overrideOfCluster?: object): RedisClient;
  /** Commands that go in one write, over one connection: that of the first key on Cluster. */
  pipeline(): RedisPipeline;
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

/** Whether it sends now. While ioredis closes a connection it is `ready` all the same, and keeps what it is asked for the next one. */
export function isReady({ status, stream }: RedisClient): boolean {
  return status === 'ready' && stream?.writable !== false;
}

/**
 * Ends a client. One of ioredis for Sentinel that is ended while it connects follows the sentinels all the same, as soon as it is connected: that would
 * keep a connection, and the process alive. So it is ended once more then.
 */
export function disconnect(client: RedisClient): void {
  if (client.status === 'connecting' && !client.isCluster) client.on('connect', () => client.disconnect());
  client.disconnect();
}

/** Overrides for a duplicate of a client, which is to have only these of its options: the others get their defaults. */
export function withoutOthers(names: readonly string[], options: object = {}): Record<string, unknown> {
  const others = Object.keys(options).filter((name) => !names.includes(name));
  return Object.fromEntries(others.map((name) => [name, undefined]));
}

export function usesTls({ options }: RedisClient): boolean {
  const { tls, redisOptions } = options as ClientOptions & { redisOptions?: ClientOptions };
  return Boolean(tls ?? redisOptions?.tls);
}

const SLOTS = 16_384;

/** CRC16 as XMODEM has it, for each byte. */
const CRCS = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

/** The slot of a Cluster that a key is in, by its hash tag if it has one. */
function slotOf(key: string): number {
  const start = key.indexOf('{') + 1;
  const end = start > 0 ? key.indexOf('}', start) : -1;
  let crc = 0;
  for (const byte of Buffer.from(end > start ? key.slice(start, end) : key)) crc = ((crc << 8) ^ CRCS[(crc >> 8) ^ byte]!) & 0xffff;
  return crc % SLOTS;
}

/** The client of a master of a Cluster. */
export function nodeAt(client: RedisClient, address: string): RedisClient | undefined {
  return client.nodes!('master').find(({ options }) => `${options.host}:${options.port}` === address);
}

/** The master of a Cluster that has the key, and its replicas, as far as the client knows. */
export function nodesOf({ isCluster, slots, options }: RedisClient, key: string | undefined): readonly string[] | undefined {
  return isCluster && key !== undefined ? slots?.[slotOf((options.keyPrefix ?? '') + key)] : undefined;
}
