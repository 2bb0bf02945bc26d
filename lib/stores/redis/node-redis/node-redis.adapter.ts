import { EventEmitter } from 'node:events';
import { inTime, KEEP_ALIVE } from '../../../core/util/clock.js';
import { type RedisClient, type RedisPipeline, withoutOthers } from '../connection/redis.client.js';
import type { NodeRedisClient } from '../connection/redis.options.js';

/** The parts of it that are used. */
interface PlainClient extends Omit<NodeRedisClient, 'sendCommand'> {
  /** Put before the keys of typed commands, and by us before those of ours. Only in version 6. */
  readonly _keyPrefix?: string;
  readonly isOpen: boolean;
  readonly isReady: boolean;
  readonly options?: {
    readonly database?: number;
    readonly socket?: { host?: string; port?: number; path?: string; tls?: boolean };
    readonly credentialsProvider?: Provider;
  };
  sendCommand(args: readonly string[]): Promise<unknown>;
  subscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>;
  unsubscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  unref(): void;
  duplicate(overrides: object): PlainClient;
}

/** Gives a password. One that streams also tells the next ones, until it is disposed of. */
interface Provider {
  readonly type: string;
  subscribe(listener: object): Promise<[credentials: unknown, subscription: { dispose(): void }]>;
}

/** The duplicate, whether it has a TCP connection, and whether we have ended it. */
interface Link {
  readonly client: PlainClient;
  isConnected: boolean;
  isBrokenOff: boolean;
}

type Argument = string | number;
type Listener = (...args: unknown[]) => void;

/** Where the server is, and who asks it. What its socket has besides is of TLS. */
const TAKEN = 'socket username password credentialsProvider name database keyPrefix disableClientInfo clientInfoTag'.split(' ');

export function overNodeRedis(client: NodeRedisClient, connectTimeout: number): RedisClient {
  return new NodeRedisAdapter(client as NodeRedisClient & PlainClient, connectTimeout);
}

/**
 * The commands and events of ioredis that the store uses, over connections of our own to the server of a client of node-redis. Each connection is a
 * duplicate of that client, since by itself node-redis sends what it could not send over the next one, and version 5 gives the replies of the last one to
 * what is asked over it. It does not connect again by itself.
 */
class NodeRedisAdapter implements RedisClient {
  readonly options: RedisClient['options'];
  private readonly events = new EventEmitter().setMaxListeners(0);
  private readonly keyPrefix: string;
  status: 'wait' | 'connecting' | 'ready' | 'end' = 'wait';
  /** The connection of now. What becomes of one before it concerns nobody. */
  private link: Link | undefined;
  private isClosed = false;

  /** @param connectTimeout milliseconds, for the TCP connection and for what is asked first. */
  constructor(
    private readonly lent: PlainClient,
    private readonly connectTimeout: number,
  ) {
    const { options: { socket, database } = {}, _keyPrefix = '' } = lent;
    this.keyPrefix = _keyPrefix;
    this.options = { keyPrefix: _keyPrefix, db: database, ...socket };
  }

  async connect(): Promise<void> {
    const { connectTimeout } = this;
    if (this.isClosed) throw new Error('The connection is closed.');
    const link = (this.link = { client: this.makeClient(), isConnected: false, isBrokenOff: false });
    this.status = 'connecting';
    this.watch(link);
    const unanswered = (): Error => new Error(`The server did not answer within ${connectTimeout} ms.`);
    try {
      // Once for the TCP connection, which node-redis limits, and once for what it asks the server.
      await inTime(2 * connectTimeout, link.client.connect(), unanswered);
    } catch (error) {
      const { isBrokenOff } = link;
      if (this.link === link) this.breakOff();
      throw isBrokenOff ? new Error('The connection was broken off.') : error;
    }
  }

  private makeClient(): PlainClient {
    const { options = {} } = this.lent;
    const { socket, credentialsProvider } = options;
    return this.lent.duplicate({
      ...withoutOthers(TAKEN, options),
      credentialsProvider: credentialsProvider && askedOnce(credentialsProvider),
      socket: {
        ...socket,
        ...{ connectTimeout: this.connectTimeout, reconnectStrategy: false, socketTimeout: undefined },
        ...{ keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE, noDelay: true },
      },
      commandOptions: undefined,
      RESP: 2,
      maintNotifications: 'disabled',
      disableOfflineQueue: true,
    });
  }

  private watch(link: Link): void {
    const { client } = link;
    client.on('connect', () => {
      link.isConnected = true;
      // Once it has sent what it asks first: else version 5 waits for the answers without an end.
      if (this.link !== link) setImmediate(() => client.isOpen && client.destroy());
    });
    client.on('ready', () => {
      if (this.link !== link) return;
      this.status = 'ready';
      // The client of the app decides how long the process lives.
      client.unref();
      this.events.emit('ready');
    });
    client.on('error', (error) => {
      if (this.link !== link) return;
      if (this.events.listenerCount('error') > 0) this.events.emit('error', error);
      if (!client.isOpen) this.ended(link);
    });
    client.on('end', () => this.ended(link));
  }

  private ended(link: Link): void {
    if (this.link !== link) return;
    const wasReady = this.status === 'ready';
    this.link = undefined;
    this.status = 'end';
    if (wasReady) this.events.emit('close');
    this.events.emit('end');
  }

  /** Destroyed before it is connected, node-redis would connect all the same: then it is destroyed as soon as it is. */
  private breakOff(): void {
    const { link } = this;
    if (!link) return;
    link.isBrokenOff = true;
    this.ended(link);
    if (link.isConnected && link.client.isOpen) link.client.destroy();
  }

  async quit(): Promise<void> {
    this.disconnect();
  }

  disconnect(reconnect = false): void {
    if (reconnect) return this.breakOff();
    this.isClosed = true;
    this.breakOff();
  }

  async subscribe(channel: string): Promise<unknown> {
    return this.link?.client.subscribe(channel, this.onMessage);
  }

  async unsubscribe(channel: string): Promise<unknown> {
    return this.link?.client.unsubscribe(channel, this.onMessage);
  }

  duplicate(): NodeRedisAdapter {
    return new NodeRedisAdapter(this.lent, this.connectTimeout);
  }

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
    return this;
  }

  off(event: string, listener: Listener): this {
    this.events.off(event, listener);
    return this;
  }

  private script(command: string, script: string, keyCount: number, keysAndArgs: readonly Argument[]): string[] {
    return [command, script, String(keyCount), ...keysAndArgs.map((one, index) => (index < keyCount ? this.keyPrefix : '') + one)];
  }

  /** Sends now, or not at all. */
  private async send(command: string[]): Promise<unknown> {
    const { link } = this;
    if (!link?.client.isReady) throw new Error('The connection to Redis is not ready.');
    try {
      return await link.client.sendCommand(command);
    } catch (error) {
      // The master is another one now: the next connection leads to it.
      if (String((error as Error).message).startsWith('READONLY') && this.link === link) this.breakOff();
      throw error;
    }
  }

  private readonly onMessage = (message: string, channel: string): void => void this.events.emit('message', channel, message);
}

/** node-redis ends its subscription to a provider only where a client is destroyed, and a connection of ours mostly ends by itself: each asks once. */
function askedOnce(provider: Provider): object {
  if (provider.type !== 'streaming-credentials-provider') return provider;
  const credentials = async (): Promise<unknown> => {
    const [now, subscription] = await provider.subscribe({ onNext: () => undefined, onError: () => undefined });
    subscription.dispose();
    return now;
  };
  return { type: 'async-credentials-provider', credentials };
}
