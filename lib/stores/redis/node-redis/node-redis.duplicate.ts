import { NodeRedisBase } from './node-redis.base.js';
import { NodeRedisLink } from './node-redis.link.js';
import type { PlainClient } from './node-redis.types.js';

/** A connection of our own to the server of a client that is lent. It does not connect again by itself. */
export class NodeRedisDuplicate extends NodeRedisBase {
  private link: NodeRedisLink | undefined;
  private isConnected = false;
  private isClosed = false;

  /** @param original resolves to the client whose server and settings it shares. */
  constructor(private readonly original: () => Promise<PlainClient>) {
    super();
  }

  get status(): string {
    if (this.isClosed) return 'end';
    return this.link?.isReady ? 'ready' : this.link ? 'connecting' : 'wait';
  }

  async connect(): Promise<void> {
    const original = await this.original();
    if (this.isClosed) throw new Error('The connection is closed.');
    const client = original.duplicate({
      // Everything that it says is in the other options.
      url: undefined,
      // Nothing is asked of it, so that its silence is no sign of a broken connection.
      socket: { ...original.options?.socket, reconnectStrategy: false, socketTimeout: undefined },
      pingInterval: undefined,
      clientSideCache: undefined,
      emitInvalidate: undefined,
    });
    this.link = new NodeRedisLink(client, (event, error) => this.emit(event, error));
    this.link.watch();
    client.on('connect', () => {
      this.isConnected = true;
      if (this.isClosed) client.destroy();
    });
    await client.connect();
  }

  override disconnect(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    const client = this.link?.client;
    // Closed while it connects, node-redis would stay connected: then it is closed as soon as it is.
    if (client?.isOpen && this.isConnected) client.destroy();
    this.emit('end');
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

  protected send(commands: readonly string[][]): Promise<unknown>[] {
    const { link } = this;
    return commands.map((command) => link?.send(command) ?? Promise.reject(new Error('The connection is not open.')));
  }

  /** It listens as long as it lives: the client is our own. */
  protected watch(): () => void {
    return () => undefined;
  }

  private readonly onMessage = (message: string, channel: string): void => this.emit('message', channel, message);
}
