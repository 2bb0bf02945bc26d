import { inTime } from '../../../core/util/clock.js';
import { NodeRedisBase } from './node-redis.base.js';
import { NodeRedisLink } from './node-redis.link.js';
import type { PlainClient } from './node-redis.types.js';

/** Milliseconds, where the original says nothing. */
const LONGEST_CONNECT = 5000;

/** A connection of our own to the server of a client that is lent. Once it has ended it may be connected again, which it does not do by itself. */
export class NodeRedisDuplicate extends NodeRedisBase {
  status: 'wait' | 'connecting' | 'ready' | 'end' = 'wait';
  private link: NodeRedisLink | undefined;
  private connecting: Promise<void> | undefined;
  private isConnected = false;
  private isClosed = false;

  /** @param original the client whose settings it shares. */
  constructor(private readonly original: PlainClient) {
    super();
  }

  connect(): Promise<void> {
    return (this.connecting ??= this.connectAnew().finally(() => (this.connecting = undefined)));
  }

  private async connectAnew(): Promise<void> {
    this.status = 'connecting';
    this.isConnected = false;
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
    const connectTimeout = original.options?.socket?.connectTimeout || LONGEST_CONNECT;
    const client = original.duplicate({
      // Everything that it says is in the other options.
      url: undefined,
      // Nothing is asked of it, so that its silence is no sign of a broken connection.
      socket: { ...original.options?.socket, connectTimeout, reconnectStrategy: false, socketTimeout: undefined },
      pingInterval: undefined,
      readonly: false,
      clientSideCache: undefined,
      emitInvalidate: undefined,
    });
    const link = new NodeRedisLink(client, (event, error) => {
      if (event === 'end') return this.ended();
      if (event === 'ready') this.status = 'ready';
      this.emit(event, error);
    });
    link.watch();
    this.link = link;
    client.on('connect', () => {
      this.isConnected = true;
      if (this.isClosed) client.destroy();
    });
    // Once for the TCP connection, which node-redis limits, and once for what it asks the server.
    await inTime(2 * connectTimeout, client.connect(), () => {
      this.breakOff();
      return new Error(`The server did not answer within ${connectTimeout} ms.`);
    });
  }

  breakOff(): void {
    const { client } = Object(this.link) as Partial<NodeRedisLink>;
    if (this.isConnected && client?.isOpen) client.destroy();
  }

  private ended(): void {
    if (this.status === 'end') return;
    this.status = 'end';
    this.emit('end');
  }

  override disconnect(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    // Destroyed before it is connected, node-redis would connect all the same: then it is destroyed as soon as it is.
    this.breakOff();
    this.ended();
  }

  override async subscribe(channel: string): Promise<unknown> {
    return this.link?.client.subscribe(channel, this.onMessage);
  }

  override async unsubscribe(channel: string): Promise<unknown> {
    return this.link?.client.unsubscribe(channel, this.onMessage);
  }

  duplicate(): NodeRedisDuplicate {
    return new NodeRedisDuplicate(this.original);
  }

  send(commands: readonly string[][]): Promise<unknown>[] {
    const { link } = this;
    if (!link) return commands.map(() => Promise.reject(new Error('The connection is not open.')));
    return commands.map((command) =>
      link.send(command).catch((error: unknown) => {
        // The master is another one now: the next connection leads to it.
        if (String((error as Error).message).startsWith('READONLY') && link.client.isOpen) link.client.destroy();
        throw error;
      }),
    );
  }

  /** It listens as long as it lives: the client is our own. */
  protected watch(): () => void {
    return () => undefined;
  }

  private readonly onMessage = (message: string, channel: string): void => this.emit('message', channel, message);
}
