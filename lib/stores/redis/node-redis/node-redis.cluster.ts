import { idle, isSettledWithin, now } from '../../../core/util/clock.js';
import { detached } from '../../../core/util/detached.js';
import { slotOf, SLOTS } from '../redis.slots.js';
import { NodeRedisBase } from './node-redis.base.js';
import { NodeRedisDuplicate } from './node-redis.duplicate.js';
import type { ClusterClient, PlainClient } from './node-redis.types.js';

/** Milliseconds between two questions for the slots. */
const PAUSE = 100;
/** Milliseconds after which a node counts as silent. */
const PATIENCE = 500;
const MOST_REDIRECTIONS = 5;
const REDIRECTION = /^(MOVED|ASK) \d+ (\S+:\d+)$/;

type Node = [host: string, port: number, ...more: unknown[]];
/** Of the reply to CLUSTER SLOTS. */
type SlotRange = [from: number, to: number, master: Node, ...replicas: Node[]];

/**
 * What `createCluster` of node-redis returns. By itself it learns of a failover only from a node that refuses a key, keeps requests for a node that is
 * away, and lets requests overtake each other. So it is only asked where nodes are and how to connect to them. Requests go over connections of our own,
 * one to each master, as long as anybody listens; the slots are asked for anew when a node is gone, silent, or refuses a key.
 */
export class NodeRedisCluster extends NodeRedisBase {
  readonly isCluster = true;
  slots: readonly (readonly string[] | undefined)[] = [];
  /** By `host:port`. */
  private readonly members = new Map<string, NodeRedisDuplicate>();
  /** Since when a node owes a reply. */
  private readonly owing = new WeakMap<NodeRedisDuplicate, number>();
  private isWatched = false;
  private isLooking = false;
  private isReady = false;
  private hasBeenReady = false;

  constructor(private readonly cluster: ClusterClient) {
    super(cluster._keyPrefix);
  }

  get status(): string {
    if (!this.cluster.isOpen) return this.hasBeenReady ? 'end' : 'wait';
    return this.isReady ? 'ready' : 'connecting';
  }

  connect(): Promise<unknown> {
    return this.cluster.connect();
  }

  nodes(role: 'master' | 'slave'): NodeRedisDuplicate[] {
    const addresses = new Set(this.slots.flatMap((nodes = []) => (role === 'master' ? nodes.slice(0, 1) : nodes.slice(1))));
    return [...addresses].map((address) => this.memberAt(address));
  }

  /** To any node. */
  duplicate(): NodeRedisDuplicate {
    return new NodeRedisDuplicate(() => this.original());
  }

  override on(event: string, listener: (...args: unknown[]) => void): this {
    super.on(event, listener);
    // It may know its nodes since, and still connect to one that is away.
    if (event === 'ready') this.look();
    return this;
  }

  protected send(commands: readonly string[][], key?: string): Promise<unknown>[] {
    const replies = this.sendTo(key === undefined ? this.anyMaster() : this.masterOf(key), commands);
    // The rest of a request for several could go to another node.
    if (replies.length > 1) return replies;
    return replies.map((reply) => reply.catch((error: unknown) => this.redirect(error, commands[0]!)));
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
      this.drop();
    };
  }

  private anyMaster(): NodeRedisDuplicate | undefined {
    return this.nodes('master').find(({ status }) => status === 'ready');
  }

  private masterOf(key: string): NodeRedisDuplicate | undefined {
    const [address] = this.slots[slotOf(key)] ?? [];
    return address === undefined ? undefined : this.memberAt(address);
  }

  /** Now, or not at all. */
  private sendTo(member: NodeRedisDuplicate | undefined, commands: readonly string[][]): Promise<unknown>[] {
    if (member?.status !== 'ready') {
      this.look();
      return commands.map(() => Promise.reject(new Error('The node of the Redis Cluster that has the key is not connected.')));
    }
    const { owing } = this;
    const since = owing.get(member);
    if (since === undefined) owing.set(member, now());
    else if (now() > since + PATIENCE) this.look();
    const replies = member.send(commands);
    const answered = (): void => void owing.delete(member);
    replies.at(-1)!.then(answered, answered);
    return replies;
  }

  private async redirect(error: unknown, command: string[], times = 1): Promise<unknown> {
    const [, kind, address] = REDIRECTION.exec(String((error as Error | undefined)?.message)) ?? [];
    if (address === undefined || times > MOST_REDIRECTIONS) throw error;
    if (kind === 'MOVED') this.look();
    const member = this.memberAt(address);
    await isSettledWithin(
      PATIENCE,
      detached(() => join(member)),
    );
    try {
      const replies = await Promise.all(this.sendTo(member, kind === 'ASK' ? [['ASKING'], command] : [command]));
      return replies.at(-1);
    } catch (next) {
      return this.redirect(next, command, times + 1);
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
    do {
      await this.refresh().catch((error: unknown) => this.emit('error', error));
      await idle(PAUSE);
    } while (this.canLook && !(this.isReady && this.nodes('master').every(({ status }) => status === 'ready')));
    this.isLooking = false;
  }

  private async refresh(): Promise<void> {
    const connected = [...this.members.values()].filter(({ status }) => status === 'ready');
    const slots = await this.ask(connected).catch(() => this.ask(this.everybody()));
    if (!this.isWatched) return;
    this.slots = slots;
    const masters = this.nodes('master');
    for (const [address, member] of this.members) {
      // One that slots move to has none yet.
      if (member.status === 'ready' || slots.some((nodes) => nodes?.includes(address))) continue;
      member.disconnect();
      this.members.delete(address);
    }
    await isSettledWithin(PATIENCE, Promise.allSettled(masters.map(join)));
    if (!this.isWatched || this.isReady) return;
    this.isReady = this.hasBeenReady = true;
    this.emit('ready');
  }

  private everybody(): NodeRedisDuplicate[] {
    const { masters, replicas } = this.cluster;
    const addresses = [...this.members.keys(), ...[...masters, ...replicas].map(({ address }) => address)];
    return [...new Set(addresses)].map((address) => this.memberAt(address));
  }

  /** Takes the first answer: a node that hangs is not the only one that knows. */
  private async ask(members: readonly NodeRedisDuplicate[]): Promise<typeof this.slots> {
    const answer = Promise.any(
      members.map(async (member) => {
        await join(member);
        return member.call('CLUSTER', 'SLOTS');
      }),
    ).catch(({ errors: [error] }: AggregateError) => Promise.reject(error as Error));
    if (!(await isSettledWithin(PATIENCE, answer))) throw new Error('No node of the Redis Cluster answers.');
    const slots = Array.from<readonly string[] | undefined>({ length: SLOTS });
    for (const [from, to, ...nodes] of (await answer) as SlotRange[]) {
      const addresses = nodes.map(([host, port]) => `${host}:${port}`);
      slots.fill(addresses, from, to + 1);
    }
    return slots;
  }

  private memberAt(address: string): NodeRedisDuplicate {
    let member = this.members.get(address);
    if (member) return member;
    member = new NodeRedisDuplicate(() => this.original(), this.placeOf(address));
    member.on('end', () => this.look());
    member.on('error', (error) => this.emit('node error', error));
    this.members.set(address, member);
    return member;
  }

  /** What a node calls itself may not be its address here. */
  private placeOf(address: string): { host: string; port: number } {
    const map = this.cluster._options?.nodeAddressMap;
    const colon = address.lastIndexOf(':');
    const named = { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
    return (typeof map === 'function' ? map(address) : map?.[address]) ?? named;
  }

  /** A client of any node, for its options. */
  private async original(): Promise<PlainClient> {
    const { masters } = this.cluster;
    const node = masters.find(({ client }) => client) ?? masters[0];
    if (!node) throw new Error('The cluster of node-redis knows no node.');
    // It makes a client at its first use.
    if (!node.client) detached(() => this.cluster.nodeClient(node)).catch(() => undefined);
    return node.client!;
  }

  private drop(): void {
    for (const member of this.members.values()) member.disconnect();
    this.members.clear();
    this.slots = [];
    this.isReady = false;
  }

  private readonly onConnect = (): void => this.look();

  private readonly onDisconnect = (): void => {
    this.drop();
    this.emit('close');
    this.emit('end');
  };
}

async function join(member: NodeRedisDuplicate): Promise<void> {
  if (member.status !== 'ready') await member.connect();
}
