import { Redis, type RedisOptions } from 'ioredis';
import { eventually } from './eventually.js';
import { startRedis, type RedisServer } from './redis-server.js';

const SLOTS = 16_384;

export interface StartClusterOptions {
  /** default 3 */
  masters?: number;
  /** of each master; default 0 */
  replicas?: number;
  /** silence of a node after which the others call it down, milliseconds; default 60,000, so that a busy machine is no failover */
  nodeTimeout?: number;
  /** more arguments of each server */
  args?: string[];
}

/** What a test may do with a node that others use after it. */
export type ClusterNode = Pick<RedisServer, 'port' | 'connection' | 'client' | 'stop'>;

/** A slot that moves from one master to another one, key by key. */
export interface SlotMove {
  slot: number;
  from: ClusterNode;
  to: ClusterNode;
  /** those that are masters now; default: those that were at the start */
  masters?: readonly ClusterNode[];
  /** is waited for before each key */
  between?: () => Promise<unknown>;
}

/** A Redis Cluster of private servers, each of which may be killed or paused; or one that is shared (shared-cluster.ts), which must stay as it is. */
export interface RedisCluster<Node extends ClusterNode = RedisServer> {
  /** the masters first, then the replicas of the first one, of the second one… */
  readonly nodes: readonly Node[];
  readonly masters: readonly Node[];
  /** where clients begin */
  readonly addresses: { host: string; port: number }[];
  /** the master that had the slot of the key at the start */
  nodeOf(key: string): Node;
  /** Keys `<prefix><i>` whose slots this master had at the start. */
  keysOn(master: Node, count: number, prefix?: string): string[];
  /** the id of a node in the Cluster */
  idOf(node: Node): string;
  moveSlot(move: SlotMove): Promise<void>;
  /** for the use by another process */
  readonly plan: ClusterPlan;
  stop(): Promise<void>;
}

/** What the nodes of a Cluster say of it, so that another process can use it. */
export interface ClusterPlan {
  masters: number;
  /** in the order of `nodes` */
  ports: number[];
  ids: string[];
}

/** Redis takes two seconds to call itself healthy. */
export async function startCluster(options: StartClusterOptions = {}): Promise<RedisCluster> {
  const { masters: count = 3, replicas = 0, nodeTimeout = 60_000, args = [] } = options;
  const cluster = ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'];
  // Nodes tell each other news the faster, the sooner they take one for dead. Nobody fails over yet.
  const gossip = ['--cluster-node-timeout', '1000', '--cluster-replica-no-failover', 'yes'];
  // A replica that has just been copied takes part in an election however old its data are.
  const ready = ['--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0'];
  const start = (): Promise<RedisServer> => startRedis({ port: 'free', args: [...cluster, ...gossip, ...ready, ...args] });
  const nodes = await Promise.all(Array.from({ length: count * (1 + replicas) }, start));
  try {
    const clients = nodes.map((node) => node.client());
    const ids = await Promise.all(clients.map(async (client) => String(await client.call('CLUSTER', 'MYID'))));
    const slotsOf = (master: number): [number, number] => [Math.ceil((master * SLOTS) / count), Math.ceil(((master + 1) * SLOTS) / count)];
    await Promise.all(
      clients.map(async (client, index) => {
        await client.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
        if (index < count) {
          const [from, to] = slotsOf(index);
          await client.call('CLUSTER', 'ADDSLOTS', ...Array.from({ length: to - from }, (_, slot) => from + slot));
        }
        if (index > 0) await client.call('CLUSTER', 'MEET', '127.0.0.1', nodes[0]!.port!);
      }),
    );
    const eachNode = (isDone: (client: Redis) => Promise<boolean>): Promise<unknown> =>
      Promise.all(clients.map((client) => eventually(() => isDone(client), { every: 20 })));
    await eachNode(async (client) =>
      new RegExp(`cluster_known_nodes:${nodes.length}\\b`).test(String(await client.call('CLUSTER', 'INFO'))),
    );
    await Promise.all(
      clients.slice(count).map(async (client, index) => {
        const master = ids[Math.floor(index / replicas)]!;
        await eventually(() => client.call('CLUSTER', 'REPLICATE', master), { every: 20 });
        await eventually(async () => /master_link_status:up/.test(await client.info('replication')), { every: 20 });
      }),
    );
    await eachNode(async (client) => /cluster_state:ok[^]*cluster_slots_assigned:16384/.test(String(await client.call('CLUSTER', 'INFO'))));
    // Clients learn of a replica only from a node that knows that it has got something.
    await Promise.all(clients.slice(0, count).map((client) => client.flushall()));
    await eachNode(async (client) => {
      const slots = (await client.call('CLUSTER', 'SLOTS')) as unknown[][];
      return slots.every((range) => range.length === 3 + replicas);
    });
    for (const client of clients) {
      await client.config('SET', 'cluster-node-timeout', nodeTimeout);
      await client.config('SET', 'cluster-replica-no-failover', 'no');
    }
    for (const client of clients) client.disconnect();
    return clusterOf(nodes, { masters: count, ports: nodes.map(({ port }) => port!), ids });
  } catch (error) {
    await Promise.all(nodes.map((node) => node.stop()));
    throw error;
  }
}

/** The view of it that tests have. */
export function clusterOf<Node extends ClusterNode>(nodes: readonly Node[], plan: ClusterPlan): RedisCluster<Node> {
  const { masters: count, ids } = plan;
  const masters = nodes.slice(0, count);
  const idOf = (node: ClusterNode): string => ids[nodes.indexOf(node as Node)]!;
  const nodeOf = (key: string): Node => masters[Math.floor((slotOf(key) * count) / SLOTS)]!;
  return {
    nodes,
    masters,
    addresses: nodes.map(({ port }) => ({ host: '127.0.0.1', port: port! })),
    nodeOf,
    keysOn(master, wanted, prefix = 'key:') {
      const keys: string[] = [];
      for (let i = 0; keys.length < wanted; i++) if (nodeOf(prefix + i) === master) keys.push(prefix + i);
      return keys;
    },
    idOf,
    plan,
    moveSlot: (move) => moveSlot({ masters, ...move }, idOf),
    stop: () => Promise.all(nodes.map((node) => node.stop())).then(() => undefined),
  };
}

/** A node that another process has started. */
export class StartedNode implements ClusterNode {
  readonly connection: { host: string; port: number };
  readonly #clients = new Set<Redis>();

  constructor(readonly port: number) {
    this.connection = { host: '127.0.0.1', port };
  }

  client(options: RedisOptions = {}): Redis {
    const client = new Redis({ disconnectTimeout: 100, ...this.connection, ...options });
    client.on('error', () => undefined); // without a listener ioredis prints
    client.once('end', () => this.#clients.delete(client));
    this.#clients.add(client);
    return client;
  }

  /** Closes the clients that `client` made. */
  stop(): Promise<void> {
    for (const client of this.#clients) client.disconnect();
    return Promise.resolve();
  }
}

async function moveSlot(
  { slot, from, to, masters, between }: SlotMove & { masters: readonly ClusterNode[] },
  idOf: (node: ClusterNode) => string,
) {
  const [source, target] = [from.client(), to.client()];
  await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', idOf(from));
  await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', idOf(to));
  let failure: unknown;
  for (;;) {
    // What comes afterwards needs a slot that has one owner.
    if (!failure) await between?.().catch((error: unknown) => (failure = error));
    const names = (await source.call('CLUSTER', 'GETKEYSINSLOT', slot, 1)) as string[];
    if (names.length === 0) break;
    await source.call('MIGRATE', '127.0.0.1', to.port!, names[0]!, 0, 1_000);
  }
  const all = masters.map((each) => each.client());
  for (const node of [target, source, ...all]) await node.call('CLUSTER', 'SETSLOT', slot, 'NODE', idOf(to));
  await epochKnown(target, all);
  for (const node of [source, target, ...all]) node.disconnect();
  if (failure) throw failure as Error;
}

/**
 * Resolves when all masters know under which epoch a node has its slots. Before that, another one could take the same epoch for what it gets, or an old
 * message of the former owner could be believed; then somebody would lose a slot again.
 */
export async function epochKnown(node: Redis, masters: readonly Redis[]): Promise<void> {
  const id = String(await node.call('CLUSTER', 'MYID'));
  const epochAt = async (one: Redis): Promise<number> => {
    const line = String(await one.call('CLUSTER', 'NODES'))
      .split('\n')
      .find((each) => each.startsWith(id))!;
    return Number(line.split(' ')[6]);
  };
  const epoch = await epochAt(node);
  await eventually(async () => {
    for (const one of masters) if ((await epochAt(one)) < epoch) return false;
    return true;
  });
}

/** A cluster of one node that owns every slot. */
export async function startClusterNode(args: string[] = []): Promise<RedisServer> {
  const { nodes } = await startCluster({ masters: 1, args });
  return nodes[0]!;
}

/** By CRC16/XMODEM of the hash tag, bit by bit: another way than the library's. */
export function slotOf(key: string): number {
  const tag = /\{([^}]+)\}/.exec(key)?.[1] ?? key;
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
  }
  return crc % SLOTS;
}
