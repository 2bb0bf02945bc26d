import { idle, now } from '../../../core/util/clock.js';
import { detached } from '../../../core/util/detached.js';
import { NodeRedisBase } from './node-redis.base.js';
import { NodeRedisDuplicate } from './node-redis.duplicate.js';
import { NodeRedisLink } from './node-redis.link.js';
import type { PlainClient, SentinelClient } from './node-redis.types.js';

/** Milliseconds between two questions to the sentinels. */
const PAUSE = 100;
/** Milliseconds for which a server that calls itself a replica is not taken for the master. */
const DEMOTION = 1000;

/**
 * What `createSentinel` of node-redis returns. It repeats requests by itself until there is a master, and lets them overtake each other: so it is only
 * asked who the master is, and the requests go over its client of the master.
 */
export class NodeRedisSentinel extends NodeRedisBase {
  private link: NodeRedisLink | undefined;
  private stopLink: (() => void) | undefined;
  private isWatched = false;
  private isLooking = false;
  private hasBeenReady = false;
  private demoted: PlainClient | undefined;
  private demotedAt = -Infinity;

  constructor(private readonly sentinel: SentinelClient) {
    super(sentinel._keyPrefix);
  }

  get status(): string {
    if (this.link?.isReady) return 'ready';
    if (this.sentinel.isOpen) return 'connecting';
    return this.hasBeenReady ? 'end' : 'wait';
  }

  async connect(): Promise<void> {
    await this.sentinel.connect();
    this.look();
  }

  duplicate(): NodeRedisDuplicate {
    return new NodeRedisDuplicate(() => this.master());
  }

  override on(event: string, listener: (...args: unknown[]) => void): this {
    super.on(event, listener);
    // Its owner may have connected it since.
    if (event === 'ready') this.look();
    return this;
  }

  protected send(commands: readonly string[][]): Promise<unknown>[] {
    const { link } = this;
    if (!link) return commands.map(() => Promise.reject(new Error('The sentinels name no master for now.')));
    return commands.map((command) =>
      link.send(command).catch((error: unknown) => {
        if (String((error as Error).message).startsWith('READONLY')) this.demote(link.client);
        throw error;
      }),
    );
  }

  protected watch(): () => void {
    this.isWatched = true;
    this.sentinel.on('error', this.onError);
    this.look();
    return () => {
      this.isWatched = false;
      this.sentinel.off('error', this.onError);
      this.drop();
    };
  }

  /** Until there is a master, as long as anybody waits for one. */
  private look(): void {
    if (this.isLooking) return;
    this.isLooking = true;
    detached(() => void this.lookOn().finally(() => (this.isLooking = false)));
  }

  private async lookOn(): Promise<void> {
    const { sentinel } = this;
    while (this.isWatched && sentinel.isOpen && !this.link?.client.isReady) {
      try {
        const master = await this.master();
        if (this.isWatched) this.use(master);
      } catch (error) {
        if (sentinel.isOpen) this.emit('error', error);
        await idle(PAUSE);
      }
    }
    if (this.isWatched && !sentinel.isOpen && this.hasBeenReady) this.emit('end');
  }

  private master(): Promise<PlainClient> {
    return this.sentinel._execute(false, async (client) => {
      if (client !== this.demoted || now() > this.demotedAt + DEMOTION) return client;
      await idle(PAUSE);
      // The sentinels are asked anew for this word.
      throw new Error('READONLY: this server is the master no more.');
    });
  }

  private use(client: PlainClient): void {
    if (client === this.link?.client) return;
    this.drop();
    const link = new NodeRedisLink(client, (event, error) => {
      if (event === 'end') this.drop();
      else this.emit(event, error);
      // It may come back by itself, but the master may be another one by now.
      if (event === 'close' || event === 'end') this.look();
    });
    this.link = link;
    this.stopLink = link.watch();
    if (!link.isReady) return;
    this.hasBeenReady = true;
    this.emit('ready');
  }

  private drop(): void {
    this.stopLink?.();
    this.link = this.stopLink = undefined;
  }

  private demote(client: PlainClient): void {
    if (client !== this.link?.client) return;
    this.demoted = client;
    this.demotedAt = now();
    this.drop();
    this.emit('close');
    this.look();
  }

  private readonly onError = (error: unknown): void => this.emit('error', error);
}
