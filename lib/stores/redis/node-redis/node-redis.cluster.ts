import { idle, isSettledWithin, now } from '../../../core/util/clock.js';
import { detached } from '../../../core/util/detached.js';
import { NodeRedisBase } from './node-redis.base.js';
import { NodeRedisDuplicate } from './node-redis.duplicate.js';
import { isReady, join, NodeRedisNodes } from './node-redis.nodes.js';
import type { ClusterClient } from './node-redis.types.js';

/** Milliseconds between two questions for the slots, at first and at most. */
const PAUSE = 100;
const LONGEST_PAUSE = 500;
/** Milliseconds after which a node counts as silent. */
const SILENCE = 500;
/** Milliseconds in which a request may be sent on to another node: later its caller may have asked for the opposite. */
const FRESH = 200;
const REDIRECTION = /^(MOVED|ASK) \d+ (\S+:\d+)$/;

/**
 * What `createCluster` of node-redis returns. By itself it learns of a failover only from a node that refuses a key, keeps requests for a node that is
 * away, and lets requests overtake each other. So it is only asked where nodes are and how to connect to them. Requests go over connections of our own
 * to the masters, as long as anybody listens; the slots are asked for anew when a node is gone, silent, or refuses a key.
 */
export class NodeRedisCluster extends NodeRedisBase {
  readonly isCluster = true;
  private readonly known: NodeRedisNodes;
  /** Since when a node owes a reply. */
  private readonly owing = new WeakMap<NodeRedisDuplicate, number>();
  private isWatched = false;
  private isLooking = false;
  private isReady = false;
  private hasBeenReady = false;

  constructor(private readonly cluster: ClusterClient) {
    super(cluster._keyPrefix);
    this.known = new NodeRedisNodes(
      cluster,
      () => this.look(),
      (error) => this.emit('node error', error),
    );
  }

  get status(): string {
    if (!this.cluster.isOpen) return this.hasBeenReady ? 'end' : 'wait';
    return this.isReady ? 'ready' : 'connecting';
  }

  get slots(): readonly (readonly string[] | undefined)[] {
    return this.known.slots;
  }

  connect(): Promise<unknown> {
    return this.cluster.connect();
  }

  nodes(role: 'master' | 'slave'): NodeRedisDuplicate[] {
    return this.known.of(role);
  }

  /** To any node. */
  duplicate(): NodeRedisDuplicate {
    return new NodeRedisDuplicate(() => this.known.original());
  }

  override on(event: string, listener: (...args: unknown[]) => void): this {
    super.on(event, listener);
    // Its owner may have connected it since. An event says so only when it is connected to each node.
    if (event === 'ready' && !this.isReady) this.look();
    return this;
  }

  protected send(commands: readonly string[][], key?: string): Promise<unknown>[] {
    const replies = this.sendTo(key === undefined ? this.anyMaster() : this.known.masterOf(key), commands);
    // The rest of a request for several could go to another node.
    if (replies.length > 1) return replies;
    const end = now() + FRESH;
    return replies.map((reply) => reply.catch((error: unknown) => this.redirect(error, commands[0]!, end)));
  }

  protected watch(): () => void {
    this.isWatched = true;
    this.cluster.on('connect', this.onConnect);
    this.cluster.on('disconnect', this.onDisconnect);
    this.look();
    return () => {
      this.isWatched = false;
      this.cluster.off('connect', this.onConnect);
      this.cluster.off('disconnect', this.onDisconnect);
      this.forget();
    };
  }

  private anyMaster(): NodeRedisDuplicate | undefined {
    const ready = this.nodes('master').filter(isReady);
    return ready.find((member) => !this.owing.has(member)) ?? ready[0];
  }

  /** Now, or not at all. */
  private sendTo(member: NodeRedisDuplicate | undefined, commands: readonly string[][]): Promise<unknown>[] {
    if (!member || !isReady(member)) {
      this.look();
      return commands.map(() => Promise.reject(new Error('The node of the Redis Cluster that has the key is not connected.')));
    }
    const { owing } = this;
    const since = owing.get(member);
    if (since === undefined) owing.set(member, now());
    else if (now() > since + SILENCE) this.look();
    const answered = (): void => void owing.delete(member);
    const refused = ({ message }: Error): void => {
      answered();
      if (/^(MOVED|CLUSTERDOWN) /.test(message)) this.look();
    };
    const replies = member.send(commands);
    for (const reply of replies) reply.then(answered, refused);
    return replies;
  }

  private async redirect(error: unknown, command: string[], end: number): Promise<unknown> {
    const [, kind, address] = REDIRECTION.exec(String((error as Error | undefined)?.message)) ?? [];
    if (address === undefined || now() > end || !this.isWatched) throw error;
    const member = this.known.importer(address);
    const joining = detached(() => join(member));
    if (!(await isSettledWithin(end - now(), joining))) throw error;
    try {
      const replies = await Promise.all(this.sendTo(member, kind === 'ASK' ? [['ASKING'], command] : [command]));
      return replies.at(-1);
    } catch (next) {
      return this.redirect(next, command, end);
    }
  }

  /** Once at least, and until each master is connected. */
  private look(): void {
    if (this.isLooking || !this.canLook) return;
    this.isLooking = true;
    detached(() => void this.lookOn());
  }

  private get canLook(): boolean {
    const { isOpen, masters } = this.cluster;
    return this.isWatched && isOpen && masters.length > 0;
  }

  private async lookOn(): Promise<void> {
    let pause = PAUSE;
    do {
      try {
        const isKnown = await this.known.refresh();
        if (isKnown && !this.isReady) this.ready();
      } catch (error) {
        this.emit('error', error);
      }
      await idle(pause);
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    } while (this.canLook && !(this.isReady && this.known.areConnected));
    this.isLooking = false;
  }

  private ready(): void {
    this.isReady = this.hasBeenReady = true;
    this.emit('ready');
  }

  private forget(): void {
    this.known.forget();
    this.isReady = false;
  }

  private readonly onConnect = (): void => this.look();

  private readonly onDisconnect = (): void => {
    this.forget();
    this.emit('close');
    this.emit('end');
  };
}
