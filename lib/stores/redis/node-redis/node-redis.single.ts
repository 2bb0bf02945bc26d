import { NodeRedisBase } from './node-redis.base.js';
import { NodeRedisDuplicate } from './node-redis.duplicate.js';
import { NodeRedisLink } from './node-redis.link.js';
import type { PlainClient } from './node-redis.types.js';

/** What `createClient` of node-redis returns. */
export class NodeRedisSingle extends NodeRedisBase {
  private readonly link: NodeRedisLink;
  private hasBeenReady: boolean;
  /** As ioredis counts them: more than 0 says of one that has ended that it has given up. */
  retryAttempts = 0;

  constructor(private readonly client: PlainClient) {
    super(client._keyPrefix);
    this.hasBeenReady = client.isReady || (client.socketEpoch ?? 0) > 0;
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

  override get options(): { readonly keyPrefix: string; readonly db?: number; readonly host?: string; readonly port?: number } {
    const { host, port } = this.client.options?.socket ?? {};
    return { ...super.options, db: this.client.options?.database, host, port };
  }

  connect(): Promise<unknown> {
    return this.client.connect();
  }

  duplicate(): NodeRedisDuplicate {
    return new NodeRedisDuplicate(this.client);
  }

  protected send(commands: readonly string[][]): Promise<unknown>[] {
    return commands.map((command) => this.link.send(command));
  }

  protected watch(): () => void {
    return this.link.watch();
  }
}
