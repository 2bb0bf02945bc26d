import { EventEmitter } from 'node:events';
import { inTime } from '../../../core/util/clock.js';
import type { RedisClient, RedisPipeline } from '../connection/redis.client.js';
import type { NodeRedisClient, PlainClient } from '../connection/node-redis.client.js';
import { NodeRedisLink } from './node-redis.link.js';

type Argument = string | number;
/** Options of ioredis for a duplicate, as far as they have a meaning here. */
type Override = { readonly db?: number; readonly connectTimeout?: number };
type Listener = (...args: unknown[]) => void;

/** Milliseconds, where the lent client has no limit. */
const LONGEST_CONNECT = 5000;

/** One for all stores of a client, which then carries few listeners of ours. */
const known = new WeakMap<object, RedisClient>();

/** Makes a client of node-redis one that the store can use. */
export function adapterOf(client: NodeRedisClient): RedisClient {
  const adapter = known.get(client) ?? (new LentNodeRedis(client as unknown as PlainClient) as Adapted as RedisClient);
  known.set(client, adapter);
  return adapter;
}

/** The store closes only clients of its own, and subscribes over no other. */
type Adapted = Omit<RedisClient, 'quit' | 'disconnect' | 'subscribe' | 'unsubscribe'>;

/** The commands and events of ioredis that the store uses, over node-redis. It listens to the client only while somebody listens to it. */
abstract class NodeRedisAdapter implements Adapted {
  private readonly events = new EventEmitter().setMaxListeners(0);
  private stopWatching: (() => void) | undefined;

  constructor(
    readonly options: NonNullable<RedisClient['options']>,
    protected readonly keyPrefix = '',
  ) {}

  abstract get status(): string;
  abstract connect(): Promise<unknown>;
  abstract duplicate(override?: Override): RedisClient;
  protected abstract send(command: string[]): Promise<unknown>;
  /** Passes the events of the client on by {@link emit}. The returned function stops. */
  protected abstract watch(): () => void;

  evalsha(sha: string, keyCount: number, ...keysAndArgs: Argument[]): Promise<unknown> {
    return this.send(this.script('EVALSHA', sha, keyCount, keysAndArgs));
  }

  eval(script: string, keyCount: number, ...keysAndArgs: Argument[]): Promise<unknown> {
    return this.send(this.script('EVAL', script, keyCount, keysAndArgs));
  }

  call(command: string, ...args: Argument[]): Promise<unknown> {
    // The only other commands of ours that have a key.
    const hasKey = /^(XADD|PEXPIRE|ZREM)$/i.test(command);
    return this.send([command, ...args.map((one, index) => (hasKey && index === 0 ? this.keyPrefix : '') + one)]);
  }

  publish(channel: string, message: string): Promise<unknown> {
    return this.call('PUBLISH', channel, message);
  }

  pubsub(subcommand: 'NUMSUB', channel: string): Promise<unknown> {
    return this.call('PUBSUB', subcommand, channel);
  }

  pipeline(): RedisPipeline {
    const commands: string[][] = [];
    return {
      evalsha: (sha, keyCount, ...keysAndArgs) => commands.push(this.script('EVALSHA', sha, keyCount, keysAndArgs)),
      eval: (script, keyCount, ...keysAndArgs) => commands.push(this.script('EVAL', script, keyCount, keysAndArgs)),
      call: (command, ...args) => commands.push([command, ...args.map(String)]),
      // node-redis writes what is sent within an iteration of the event loop at once.
      exec: async () => {
        const replies = await Promise.allSettled(commands.map((command) => this.send(command)));
        return replies.map((reply) => (reply.status === 'fulfilled' ? [null, reply.value] : [reply.reason as Error, null]));
      },
    };
  }

  on(event: string, listener: Listener): this {
    this.events.on(event, listener);
    this.stopWatching ??= this.watch();
    return this;
  }

  off(event: string, listener: Listener): this {
    this.events.off(event, listener);
    if (this.events.eventNames().length > 0) return this;
    this.stopWatching?.();
    this.stopWatching = undefined;
    return this;
  }

  protected emit(event: string, ...args: unknown[]): void {
    if (event !== 'error' || this.events.listenerCount('error') > 0) this.events.emit(event, ...args);
  }

  private script(command: string, script: string, keyCount: number, keysAndArgs: readonly Argument[]): string[] {
    return [command, script, String(keyCount), ...keysAndArgs.map((one, index) => (index < keyCount ? this.keyPrefix : '') + one)];
  }
}

/** A client that the app lends. */
class LentNodeRedis extends NodeRedisAdapter {
  private readonly link: NodeRedisLink;
  private hasBeenReady: boolean;
  /** More than 0: it has ended by itself, as ioredis counts. */
  retryAttempts = 0;

  constructor(private readonly client: PlainClient) {
    const { host, port, path, tls } = client.options?.socket ?? {};
    super({ keyPrefix: client._keyPrefix ?? '', db: client.options?.database, host, port, path, tls }, client._keyPrefix);
    this.hasBeenReady = client.isReady || client.socketEpoch > 0;
    this.link = new NodeRedisLink(client, (event, error) => {
      this.hasBeenReady ||= event === 'ready';
      if (event === 'end' || event === 'ready') this.retryAttempts = error === undefined ? 0 : 1;
      // A client that could not connect may be connected once more.
      if (event !== 'end' || this.hasBeenReady) this.emit(event, error);
    });
  }

  get status(): string {
    if (this.link.isReady) return 'ready';
    if (this.client.isOpen) return 'connecting';
    return this.hasBeenReady ? 'end' : 'wait';
  }

  connect(): Promise<unknown> {
    return this.client.connect();
  }

  duplicate(override?: Override): NodeRedisDuplicate {
    return new NodeRedisDuplicate(this.client, this.options, override);
  }

  protected send(command: string[]): Promise<unknown> {
    return this.link.send(command);
  }

  protected watch(): () => void {
    return this.link.watch();
  }
}

/** A connection of our own to the server of a client that is lent. Once it has ended it may be connected again, which it does not do by itself. */
class NodeRedisDuplicate extends NodeRedisAdapter implements RedisClient {
  status: 'wait' | 'connecting' | 'ready' | 'end' = 'wait';
  private link: NodeRedisLink | undefined;
  readonly condition: RedisClient['condition'];
  private isConnected = false;
  private isClosed = false;
  /** node-redis, destroyed while it makes itself known to the server, goes on to fail with a TypeError of its own, which tells nobody anything. */
  private isBrokenOff = false;

  /** @param original the client whose settings it shares. */
  constructor(
    private readonly original: PlainClient,
    options: NonNullable<RedisClient['options']>,
    private readonly override: Override = {},
  ) {
    super(options, options.keyPrefix);
    this.condition = { select: override.db };
  }

  async connect(): Promise<void> {
    this.status = 'connecting';
    this.isConnected = this.isBrokenOff = false;
    try {
      await this.open();
    } catch (error) {
      this.ended();
      throw error;
    }
  }

  private async open(): Promise<void> {
    const { original } = this;
    if (this.isClosed) throw new Error('The connection is closed.');
    const { db, connectTimeout = original.options?.socket?.connectTimeout || LONGEST_CONNECT } = this.override;
    const client = original.duplicate({
      ...(db !== undefined && { database: db }),
      // Everything that it says is in the other options.
      url: undefined,
      // Nothing is asked of it, so that its silence is no sign of a broken connection.
      socket: { ...original.options?.socket, connectTimeout, reconnectStrategy: false, socketTimeout: undefined },
      pingInterval: undefined,
      readonly: false,
      clientSideCache: undefined,
      emitInvalidate: undefined,
    });
    this.link = new NodeRedisLink(client, (event, error) => {
      if (event === 'end') return this.ended();
      if (event === 'ready') this.status = 'ready';
      if (event !== 'error' || !this.isBrokenOff) this.emit(event, error);
    });
    this.link.watch();
    client.on('connect', () => {
      this.isConnected = true;
      if (this.isClosed) this.breakOff();
    });
    const connecting = client.connect().catch((error: unknown) => {
      throw this.isBrokenOff ? new Error('The connection was broken off.') : error;
    });
    // Once for the TCP connection, which node-redis limits, and once for what it asks the server.
    await inTime(2 * connectTimeout, connecting, () => {
      this.breakOff();
      return new Error(`The server did not answer within ${connectTimeout} ms.`);
    });
  }

  /** Destroyed before it is connected, node-redis would connect all the same: then it is destroyed as soon as it is. */
  private breakOff(): void {
    const { link } = this;
    if (!this.isConnected || !link?.client.isOpen) return;
    this.isBrokenOff = true;
    link.client.destroy();
  }

  private ended(): void {
    if (this.status === 'end') return;
    this.status = 'end';
    this.emit('end');
  }

  async quit(): Promise<void> {
    this.disconnect();
  }

  disconnect(reconnect = false): void {
    if (reconnect) return this.breakOff();
    if (this.isClosed) return;
    this.isClosed = true;
    this.breakOff();
    this.ended();
  }

  async subscribe(channel: string): Promise<unknown> {
    this.link?.client.unref();
    return this.link?.client.subscribe(channel, this.onMessage);
  }

  async unsubscribe(channel: string): Promise<unknown> {
    return this.link?.client.unsubscribe(channel, this.onMessage);
  }

  duplicate(override?: Override): NodeRedisDuplicate {
    return new NodeRedisDuplicate(this.original, this.options, { db: this.override.db, ...override });
  }

  protected async send(command: string[]): Promise<unknown> {
    const { link } = this;
    if (!link) throw new Error('The connection is not open.');
    try {
      return await link.send(command);
    } catch (error) {
      // The master is another one now: the next connection leads to it.
      if (String((error as Error).message).startsWith('READONLY') && link.client.isOpen) link.client.destroy();
      throw error;
    }
  }

  /** It listens as long as it lives: the client is our own. */
  protected watch(): () => void {
    return () => undefined;
  }

  private readonly onMessage = (message: string, channel: string): void => this.emit('message', channel, message);
}
