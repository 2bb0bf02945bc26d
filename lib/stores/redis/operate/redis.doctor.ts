import type { DoctorCheck } from '../../../core/model/doctor-report.js';
import { StoreError } from '../../../core/model/errors.js';
import { bad, checkOf, warning, type Finding } from '../../../core/store/store-doctor.js';
import type { RedisClient } from '../connection/redis.client.js';
import type { RedisConnection } from '../connection/redis.connection.js';
import { OF_CLUSTER, OF_REPLICA } from '../connection/redis.errors.js';
import { listOf } from '../scripts/redis.replies.js';

/** The oldest version that the tests are run on. */
const OLDEST = '7.0';
/** Below it, nothing here was ever tried. */
const UNUSABLE = '5.0';
const ALL = Array.from({ length: 10 }, (_, index) => `G${index + 1}`);
const WORST = ['bad', 'unknown', 'warn', 'ok'] as const;

/** Examines a Redis server, or each master of a Cluster. Of several, the worst answer counts. */
export async function redisChecks(connection: RedisConnection): Promise<DoctorCheck[]> {
  const { client } = connection;
  // A Cluster client knows its nodes once it is connected.
  if (client.isCluster) await connection.request((cluster) => cluster.call('TIME')).catch(() => undefined);
  const masters = client.isCluster ? (client.nodes?.('master') ?? []) : [];
  const servers = masters.length === 0 ? [new Server(connection)] : masters.map((node) => new Server(connection, node));
  const all = await Promise.all(servers.map((server) => server.checks()));
  return all[0]!.map((_, index) => {
    const same = all.map((checks) => checks[index]!);
    const worst = WORST.map((state) => same.findIndex((check) => check.state === state)).find((at) => at >= 0)!;
    const check = same[worst]!;
    return check.state === 'ok' || same.length === 1 ? check : { ...check, seen: `${servers[worst]!.address}: ${check.seen}` };
  });
}

/** One server, as the doctor asks it. */
class Server {
  private info = '';

  /** @param node of a Cluster; `undefined`: the server of the connection. */
  constructor(
    private readonly connection: RedisConnection,
    private readonly node?: RedisClient,
  ) {}

  get address(): string {
    const { host, port } = Object(this.node?.options) as { host?: string; port?: number };
    return `${host}:${port}`;
  }

  async checks(): Promise<DoctorCheck[]> {
    const asked = this.call('INFO').then((text) => void (this.info = String(text)));
    asked.catch(() => undefined);
    const of = (look: () => Finding | Promise<Finding>) => () => asked.then(look);
    const evicts = { purpose: 'efficiency', because: 'it is unknown whether this Redis evicts keys' } as const;
    const because = 'it is unknown whether this Redis has written a grant to the disk when it answers';
    const copies = { purpose: 'correctness', because: 'it is unknown whether this Redis has replicas' } as const;
    return Promise.all([
      checkOf(
        { id: 'version', name: 'version', touches: ALL },
        of(() => this.version()),
      ),
      checkOf(
        { id: 'role', name: 'master, or Cluster', touches: ['G1', 'G2'] },
        of(() => this.role()),
      ),
      checkOf(
        { id: 'eviction', name: 'maxmemory-policy', touches: ['G2'], unseen: evicts },
        of(() => this.eviction()),
      ),
      checkOf(
        { id: 'persistence', name: 'persistence', touches: ['G2'], unseen: { purpose: 'correctness', because } },
        of(() => this.persistence()),
      ),
      checkOf(
        { id: 'replication', name: 'replication', touches: ['G2'], unseen: copies },
        of(() => this.replication()),
      ),
    ]);
  }

  private call(...words: [string, ...string[]]): Promise<unknown> {
    return this.connection.request((client) => (this.node ?? client).call(...words));
  }

  /** Of INFO; `undefined`: the server does not tell it. */
  private field(name: string): string | undefined {
    return new RegExp(`^${name}:([^\\r\\n]+)`, 'm').exec(this.info)?.[1]?.trim();
  }

  private known(name: string): string {
    const value = this.field(name);
    if (value === undefined) throw new Error(`INFO has no ${name}`);
    return value;
  }

  /** @throws where the server has no such setting, or hides it. */
  private async setting(name: string): Promise<string> {
    const [, value] = listOf(await this.call('CONFIG', 'GET', name));
    if (typeof value !== 'string') throw new Error(`CONFIG GET hides ${name}`);
    return value;
  }

  private version(): Finding {
    const version = this.known('redis_version');
    const valkey = this.field('valkey_version');
    const seen = valkey === undefined ? `Redis ${version}` : `Valkey ${valkey}`;
    const isOlderThan = (other: string): boolean => version.localeCompare(other, 'en', { numeric: true }) < 0;
    const advice = `Locks are tested with Redis ${OLDEST} and later.`;
    if (isOlderThan(UNUSABLE)) return bad(seen, advice, 'this Redis is too old');
    if (isOlderThan(OLDEST)) return warning(seen, advice);
    const other = ['dragonfly_version', 'keydb_version', 'garnet_version'].find((name) => this.field(name) !== undefined);
    if (other === undefined) return { seen };
    return warning(`${other.split('_')[0]} ${this.field(other)}`, 'This package is not tested with this server. Use Redis or Valkey.');
  }

  /** A client of a Cluster asks any node. A node that has all slots is as good as a server; a proxy may stand before several. */
  private async role(): Promise<Finding> {
    const { connection } = this;
    const { isCluster } = connection.client;
    if (!isCluster && this.known('cluster_enabled') === '1') {
      const state = await this.call('CLUSTER', 'INFO').catch(() => '');
      if (Number(/cluster_size:(\d+)/.exec(String(state))?.[1]) > 1)
        connection.misled = new StoreError(OF_CLUSTER, { transient: false, isRefusal: true });
    }
    if (connection.misled)
      return bad('a node of a Cluster, used as a single server', connection.misled.message, 'other nodes have most keys');
    if (connection.astray) return bad('another database', connection.astray.message, 'locks would be in another database');
    if (this.known('role') === 'master') return { seen: isCluster ? 'a Cluster' : 'a master' };
    const seen = `a replica of ${this.field('master_host')}:${this.field('master_port')}`;
    return bad(seen, OF_REPLICA, 'this is a replica, which gives no locks');
  }

  /** Every key of a lock has an end, so that the `volatile-` policies evict it as well. */
  private eviction(): Finding {
    const policy = this.known('maxmemory_policy');
    if (policy === 'noeviction') return { seen: policy };
    const advice = 'CONFIG SET maxmemory-policy noeviction, and the same in redis.conf: a full server evicts locks that are held.';
    return bad(policy, advice, 'this Redis evicts locks when its memory is full');
  }

  private async persistence(): Promise<Finding> {
    const advice = 'Set appendonly yes and appendfsync always, or check the fencing token at the resource.';
    if (this.known('aof_enabled') !== '1') return warning('no append-only file', advice, 'this Redis forgets locks when it restarts');
    if (this.field('aof_last_write_status') === 'err') {
      const seen = 'the last write of the append-only file has failed';
      return bad(seen, 'Look at the disk and the log of the server.', 'this Redis cannot write to its disk', 'correctness');
    }
    const seen = `appendfsync ${await this.setting('appendfsync')}`;
    if (seen === 'appendfsync always') return { seen };
    const because = seen === 'appendfsync everysec' ? 'this Redis fsyncs every second' : 'this Redis leaves it to the system when to fsync';
    return warning(seen, advice, because);
  }

  private async replication(): Promise<Finding> {
    const replicas = Number(this.known('connected_slaves'));
    if (replicas === 0) return { seen: 'no replicas' };
    const least = await this.setting('min-replicas-to-write').catch(() => undefined);
    // Of a Cluster: its nodes stop a master that is cut off.
    const goesOn = least === '0' && this.field('cluster_enabled') !== '1';
    const forgets = 'A failover can forget a grant: check the fencing token at the resource.';
    return warning(
      `replicas: ${replicas}${goesOn ? ', min-replicas-to-write 0' : ''}`,
      goesOn ? `${forgets} Set min-replicas-to-write 1: else a master that is cut off goes on granting locks.` : forgets,
      'this Redis has replicas',
    );
  }
}
