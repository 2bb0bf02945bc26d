import { now } from '../../../core/util/clock.js';
import { detached } from '../../../core/util/detached.js';
import { slotOf } from '../redis.slots.js';
import { NodeRedisBase } from './node-redis.base.js';
import { NodeRedisDuplicate } from './node-redis.duplicate.js';
import { NodeRedisLink, optionsFor } from './node-redis.link.js';
import { NodeRedisSingle } from './node-redis.single.js';
import type { ClusterClient, ClusterNode, PlainClient } from './node-redis.types.js';

/** Milliseconds for which requests wait for a node to which there was no connection yet. */
const FIRST_CONNECTION = 1000;
/** Milliseconds between two looks for the node that has taken the place of one that is away. */
const PAUSE = 500;
const NOT_CONNECTED = 'The node of the Redis Cluster that has this key is not connected.';

/**
 * What `createCluster` of node-redis returns. Requests go to the clients of its nodes, without its own detours, so that they keep their order and
 * nothing is kept for a node that is away. It only follows redirections.
 */
export class NodeRedisCluster extends NodeRedisBase {
  readonly isCluster = true;
  private readonly links = new Map<PlainClient, { link: NodeRedisLink; stop: () => void }>();
  private readonly connecting = new Map<ClusterNode, { client: Promise<PlainClient>; since: number }>();
  private readonly adapters = new WeakMap<PlainClient, NodeRedisSingle>();
  private isWatched = false;
  private hasBeenReady = false;
  private lookedAt = -Infinity;

  constructor(private readonly cluster: ClusterClient) {
    super(cluster._keyPrefix);
  }

  get status(): string {
    const { isOpen, masters } = this.cluster;
    if (isOpen && masters.length > 0) {
      this.hasBeenReady = true;
      return 'ready';
    }
    if (isOpen) return 'connecting';
    return this.hasBeenReady ? 'end' : 'wait';
  }

  connect(): Promise<unknown> {
    return this.cluster.connect();
  }

  duplicate(): NodeRedisDuplicate {
    return new NodeRedisDuplicate(async () => this.cluster.nodeClient(this.anyNode()));
  }

  nodes(role: 'all' | 'master' | 'slave'): NodeRedisSingle[] {
    const { masters, replicas } = this.cluster;
    const nodes = [...(role === 'slave' ? [] : masters), ...(role === 'master' ? [] : replicas)];
    return nodes.map((node) => {
      // It connects a node at its first use.
      if (!node.client) this.cluster.nodeClient(node).catch(() => undefined);
      const client = node.client!;
      let adapter = this.adapters.get(client);
      if (!adapter) this.adapters.set(client, (adapter = new NodeRedisSingle(client)));
      return adapter;
    });
  }

  protected send(commands: readonly string[][], key: string | undefined): Promise<unknown>[] {
    let node: ClusterNode | undefined;
    try {
      node = key === undefined ? this.anyNode() : this.cluster.slots[slotOf(key)]?.master;
    } catch {
      // It is closed.
    }
    if (!node) return commands.map(() => Promise.reject(new Error(NOT_CONNECTED)));
    const replies = this.sendTo(node, commands);
    if (key === undefined) return replies;
    if (replies.length === 1) return [replies[0]!.catch((error: unknown) => this.redirect(error, key, commands[0]!))];
    const first = replies[0]!.catch((error: unknown) => {
      // What follows it was answered by a node that has nothing to do with it.
      if (isRedirection(error)) void this.lookAgain(node.client, true);
      throw error;
    });
    return [first, ...replies.slice(1).map((reply) => Promise.all([reply, first]).then(([value]) => value))];
  }

  protected watch(): () => void {
    const { cluster } = this;
    this.isWatched = true;
    cluster.on('connect', this.onConnect);
    cluster.on('disconnect', this.onDisconnect);
    cluster.on('error', this.onError);
    cluster.on('node-error', this.onNodeError);
    return () => {
      this.isWatched = false;
      cluster.off('connect', this.onConnect);
      cluster.off('disconnect', this.onDisconnect);
      cluster.off('error', this.onError);
      cluster.off('node-error', this.onNodeError);
      for (const { stop } of this.links.values()) stop();
      this.links.clear();
    };
  }

  /** A master that is connected, if there is one. */
  private anyNode(): ClusterNode {
    const { masters } = this.cluster;
    const node = masters.find(({ client }) => client?.isReady) ?? masters[0];
    if (!node) throw new Error('The Redis Cluster is not connected.');
    return node;
  }

  private sendTo(node: ClusterNode, commands: readonly string[][]): Promise<unknown>[] {
    const { client } = node;
    if (client?.isReady && !this.connecting.has(node)) return commands.map((command) => this.linkOf(client).send(command));
    const pending = client && !node.connectPromise && !this.connecting.has(node) ? undefined : this.firstConnection(node);
    if (!pending) {
      void this.lookAgain(this.cluster.masters.find((other) => other.client?.isReady)?.client);
      return commands.map(() => Promise.reject(new Error(NOT_CONNECTED)));
    }
    return commands.map((command) => pending.then((connected) => this.linkOf(connected).send(command)));
  }

  /** Requests that wait for it keep their order, and the ones after them wait too. */
  private firstConnection(node: ClusterNode): Promise<PlainClient> | undefined {
    const known = this.connecting.get(node);
    if (known) return now() < known.since + FIRST_CONNECTION ? known.client : undefined;
    const client = detached(() => this.cluster.nodeClient(node));
    const end = (): void => void this.connecting.delete(node);
    client.then(end, end);
    this.connecting.set(node, { client, since: now() });
    return client;
  }

  private linkOf(client: PlainClient): NodeRedisLink {
    const known = this.links.get(client);
    if (known) return known.link;
    const link = new NodeRedisLink(client, (event) => {
      if (event !== 'end') return;
      this.links.get(client)?.stop();
      this.links.delete(client);
    });
    if (this.isWatched) this.links.set(client, { link, stop: link.watch() });
    return link;
  }

  private async redirect(error: unknown, key: string, command: readonly string[]): Promise<unknown> {
    if (!isRedirection(error)) throw error;
    return this.cluster.sendCommand(key, false, command, optionsFor());
  }

  /** A master that is dead says to nobody that another one has taken its place. */
  private async lookAgain(node: PlainClient | undefined, isUrgent = false): Promise<void> {
    if (!node || (!isUrgent && now() < this.lookedAt + PAUSE)) return;
    this.lookedAt = now();
    await detached(() => this.cluster._slots?.rediscover?.(node))?.catch(() => undefined);
  }

  private readonly onConnect = (): void => {
    this.hasBeenReady = true;
    this.emit('ready');
  };

  private readonly onDisconnect = (): void => {
    this.emit('close');
    this.emit('end');
  };

  private readonly onError = (error: unknown): void => this.emit('error', error);
  private readonly onNodeError = (error: unknown): void => this.emit('node error', error);
}

function isRedirection(error: unknown): boolean {
  return /^(MOVED|ASK) /.test(String((error as Error | undefined)?.message));
}
