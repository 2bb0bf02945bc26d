import { isSettledWithin, now } from '../../../core/util/clock.js';
import { detached } from '../../../core/util/detached.js';
import { slotOf, SLOTS } from '../redis.slots.js';
import { NodeRedisDuplicate } from './node-redis.duplicate.js';
import type { ClusterClient, Place, PlainClient } from './node-redis.types.js';

/** Milliseconds that the nodes have to tell the slots. */
const PATIENCE = 500;
/** Milliseconds for which a node without slots is kept that some move to. */
const IMPORT = 10_000;

type Node = [host: string, port: number, ...more: unknown[]];
/** Of the reply to CLUSTER SLOTS. */
type SlotRange = [from: number, to: number, master: Node, ...replicas: Node[]];

/** The nodes of a cluster of node-redis: which slots they have, and a connection of our own to each that is used. */
export class NodeRedisNodes {
  slots: readonly (readonly string[] | undefined)[] = [];
  private addresses: Record<'master' | 'slave', readonly string[]> = { master: [], slave: [] };
  /** By `host:port`. */
  private readonly members = new Map<string, NodeRedisDuplicate>();
  /** When somebody was last sent to a node by its address. */
  private readonly importing = new Map<string, number>();
  /** Another one when all that was learned is forgotten. */
  private era = {};

  /**
   * @param onEnd is called when a connection has ended.
   * @param onError is called with what ails one.
   */
  constructor(
    private readonly cluster: ClusterClient,
    private readonly onEnd: () => void,
    private readonly onError: (error: unknown) => void,
  ) {}

  of(role: 'master' | 'slave'): NodeRedisDuplicate[] {
    return this.addresses[role].map((address) => this.at(address));
  }

  masterOf(key: string): NodeRedisDuplicate | undefined {
    const [address] = this.slots[slotOf(key)] ?? [];
    return address === undefined ? undefined : this.at(address);
  }

  /** The one that a node names to which a slot moves. */
  importer(address: string): NodeRedisDuplicate {
    this.importing.set(address, now());
    return this.at(address);
  }

  get areConnected(): boolean {
    return this.of('master').every(isReady);
  }

  /** Asks for the slots and connects to the masters. False: all was forgotten meanwhile. @throws what a node says, if none tells the slots. */
  async refresh(): Promise<boolean> {
    const { era } = this;
    const ranges = await this.askInTurn(era);
    if (!ranges || era !== this.era) return false;
    this.use(ranges);
    await isSettledWithin(PATIENCE, Promise.allSettled(this.of('master').map(join)));
    return era === this.era;
  }

  /** First those that are connected. `undefined`: all was forgotten meanwhile, and nobody would close what is connected now. */
  private async askInTurn(era: object): Promise<SlotRange[] | undefined> {
    let failure: unknown;
    const known = (): NodeRedisDuplicate[] => this.cluster.masters.map(({ address }) => this.at(address));
    for (const members of [() => this.of('master').filter(isReady), known, () => this.everybody()]) {
      if (era !== this.era) return undefined;
      try {
        return await this.ask(members());
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  forget(): void {
    for (const member of this.members.values()) member.disconnect();
    this.members.clear();
    this.importing.clear();
    this.slots = [];
    this.addresses = { master: [], slave: [] };
    this.era = {};
  }

  /** A client of any node, for its options. */
  async original(): Promise<PlainClient> {
    const { masters } = this.cluster;
    const node = masters.find(({ client }) => client) ?? masters[0];
    if (!node) throw new Error('The cluster of node-redis knows no node.');
    // It makes a client at its first use.
    if (!node.client) detached(() => this.cluster.nodeClient(node)).catch(() => undefined);
    return node.client!;
  }

  private everybody(): NodeRedisDuplicate[] {
    const { replicas, _options } = this.cluster;
    const roots = (_options?.rootNodes ?? []).flatMap(({ url, socket }) => (url === undefined ? (socket ?? []) : placeIn(url)));
    const others = [...replicas.map(({ address }) => address), ...roots.map(({ host, port }) => `${host}:${port}`)];
    const addresses = [...this.members.keys(), ...others];
    return [...new Set(addresses)].map((address) => this.at(address));
  }

  /** Takes the first answer: a node that hangs is not the only one that knows. */
  private async ask(members: readonly NodeRedisDuplicate[]): Promise<SlotRange[]> {
    const answer = Promise.any(
      members.map(async (member) => {
        await join(member);
        const ranges = (await member.call('CLUSTER', 'SLOTS')) as SlotRange[];
        if (ranges.length === 0) throw new Error('The node is in no Redis Cluster.');
        return ranges;
      }),
    ).catch(({ errors: [error] }: AggregateError) => Promise.reject(error as Error));
    if (!(await isSettledWithin(PATIENCE, answer))) throw new Error('No node of the Redis Cluster answers.');
    return answer;
  }

  private use(ranges: readonly SlotRange[]): void {
    const slots = Array.from<readonly string[] | undefined>({ length: SLOTS });
    const [masters, replicas] = [new Set<string>(), new Set<string>()];
    for (const [from, to, ...nodes] of ranges) {
      const [master, ...others] = nodes.map(([host, port]) => `${host}:${port}`) as [string, ...string[]];
      slots.fill([master, ...others], from, to + 1);
      masters.add(master);
      for (const other of others) replicas.add(other);
    }
    this.slots = slots;
    this.addresses = { master: [...masters], slave: [...replicas] };
    for (const [address, member] of this.members) {
      const isImporting = now() < (this.importing.get(address) ?? -Infinity) + IMPORT;
      // A replica is connected only if no master could be asked.
      const isSpare = replicas.has(address) && member.status === 'wait';
      if (masters.has(address) || isSpare || isImporting) continue;
      member.disconnect();
      this.members.delete(address);
      this.importing.delete(address);
    }
  }

  private at(address: string): NodeRedisDuplicate {
    let member = this.members.get(address);
    if (member) return member;
    member = new NodeRedisDuplicate(() => this.original(), this.placeOf(address));
    member.on('end', this.onEnd);
    member.on('error', this.onError);
    this.members.set(address, member);
    return member;
  }

  /** What a node calls itself may not be its address here. */
  private placeOf(address: string): Place {
    const map = this.cluster._options?.nodeAddressMap;
    const colon = address.lastIndexOf(':');
    const named = { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
    return (typeof map === 'function' ? map(address) : map?.[address]) ?? named;
  }
}

export function isReady({ status }: NodeRedisDuplicate): boolean {
  return status === 'ready';
}

export async function join(member: NodeRedisDuplicate): Promise<void> {
  if (member.status !== 'ready') await member.connect();
}

function placeIn(url: string): Place {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port || 6379) };
}
