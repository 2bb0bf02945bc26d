import type { DoctorCheck } from '../../../core/model/doctor-report.js';
import { messageOf, StoreError } from '../../../core/model/errors.js';
import { addressOf, bad, checksOf, isOlder, versionFinding, warning } from '../../../core/store/store-doctor.js';
import type { RedisClient, ClientOptions } from '../connection/redis.client.js';
import type { RedisConnection } from '../connection/redis.connection.js';
import { OF_CLUSTER, OF_REPLICA } from '../connection/redis.errors.js';

/** The oldest version that the tests are run on. */
const OLDEST = '7.0';
/** Locks do not work on a version before this. */
const OLDEST_USABLE = '5.0';
/** Nodes that are listed in the location of the locks. */
const MOST_LISTED = 6;
const WORST_FIRST = ['bad', 'unknown', 'warn', 'ok'];

/** Examines a Redis server, or each master of a Cluster, of which the worst result of each check counts. */
export async function redisChecks(connection: RedisConnection): Promise<DoctorCheck[]> {
  const { client } = connection;
  const answer = connection.request((client) => client.call('TIME'));
  // A Cluster client knows its nodes once it is connected.
  if (client.isCluster) await answer.catch(() => undefined);
  const masters = (client.isCluster && client.nodes?.('master')) || [];
  const location = checksOf({ location: () => answer.then(() => ({ seen: locationOf(connection, masters) })) });
  return (await Promise.all([location, checksOfAll(connection, masters)])).flat();
}

/** Where the store looks for its keys: what two processes must have in common. It has no user and no password. */
function locationOf({ client: { options }, keyPrefix }: RedisConnection, masters: readonly RedisClient[]): string {
  const { host = 'localhost', port = 6379, path, sentinels, name, db = 0 } = options;
  const prefix = keyPrefix && `, keyPrefix ${JSON.stringify(keyPrefix)}`;
  const listed = (all: readonly ClientOptions[]): string => {
    const addresses = all.map(({ host = 'localhost', port = 26_379 }) => addressOf(host, port)).sort();
    return `${addresses.slice(0, MOST_LISTED).join(', ')}${addresses.length > MOST_LISTED ? ', …' : ''}`;
  };
  if (masters.length > 0) return `at a Cluster of ${masters.length}, ${listed(masters.map((master) => master.options))}${prefix}`;
  if (sentinels) return `at the master "${name}" of sentinels ${listed(sentinels)}, database ${db}${prefix}`;
  return `at ${path ?? addressOf(host, port)}/${db}${prefix}`;
}

async function checksOfAll(connection: RedisConnection, masters: readonly RedisClient[]): Promise<DoctorCheck[]> {
  if (masters.length === 0) return serverChecks(connection);
  const all = await Promise.all(masters.map((node) => serverChecks(connection, node)));
  const rankOf = ({ state }: DoctorCheck): number => WORST_FIRST.indexOf(state);
  return all[0]!.map((_, index) => all.map((checks) => checks[index]!).sort((a, b) => rankOf(a) - rankOf(b))[0]!);
}

/** @param node of a Cluster. */
async function serverChecks(connection: RedisConnection, node?: RedisClient): Promise<DoctorCheck[]> {
  const { isCluster } = connection.client;
  const call = (...words: [string, ...string[]]): Promise<unknown> => connection.request((client) => (node ?? client).call(...words));
  /** The fields of INFO that the server sends. */
  const info = call('INFO').then(
    (reply) => new Map([...String(reply).matchAll(/^(\w+):([^\r\n]+)/gm)].map(([, name = '', value = '']) => [name, value.trim()])),
  );
  info.catch(() => undefined);
  /** @throws where the server does not send it. */
  const known = async (name: string): Promise<string> => {
    const value = (await info).get(name);
    if (value === undefined) throw new Error(`INFO has no ${name}`);
    return value;
  };
  /** @throws where the server has no such setting, or hides it. */
  const setting = async (name: string): Promise<string> => {
    const [, value] = (await call('CONFIG', 'GET', name)) as unknown[];
    if (typeof value !== 'string') throw new Error(`CONFIG GET hides ${name}`);
    return value;
  };
  const checks = await checksOf({
    async version() {
      const version = await known('redis_version');
      const finding = versionFinding('Redis', version, OLDEST_USABLE);
      if (finding.state !== undefined) return finding;
      if (isOlder(version, OLDEST)) return warning(finding.seen, `Locks are tested with Redis ${OLDEST} and later.`);
      const fields = await info;
      const other = ['dragonfly', 'keydb', 'garnet'].find((name) => fields.has(`${name}_version`));
      const advice = 'This package is not tested with this server. Use Redis or Valkey.';
      if (other !== undefined) return warning(`${other} ${fields.get(`${other}_version`)}`, advice);
      const valkey = fields.get('valkey_version');
      return valkey === undefined ? finding : { seen: `Valkey ${valkey}` };
    },
    // A client of a Cluster asks any node. A node that has all slots is as good as a server; a proxy may stand before several.
    async role() {
      if (!isCluster && (await known('cluster_enabled')) === '1') {
        const state = await call('CLUSTER', 'INFO').catch(() => '');
        const isPart = Number(/cluster_size:(\d+)/.exec(String(state))?.[1]) > 1;
        if (isPart) connection.facts.misled = new StoreError(OF_CLUSTER, { transient: false, isRefusal: true, isUnsent: true });
      }
      const { misled, astray } = connection.facts;
      if (misled) return bad('a node of a Cluster, used as a single server', messageOf(misled), 'other nodes have most keys');
      if (astray) return bad('another database', messageOf(astray), 'locks would be in another database');
      if ((await known('role')) === 'master') return { seen: isCluster ? 'a Cluster' : 'a master' };
      const because = 'this is a replica, which gives no locks';
      return bad(`a replica of ${(await info).get('master_host')}:${(await info).get('master_port')}`, OF_REPLICA, because);
    },
    // Every key of a lock has an end, so that the `volatile-` policies evict it as well.
    async eviction() {
      const policy = await known('maxmemory_policy');
      const advice = 'CONFIG SET maxmemory-policy noeviction, and the same in redis.conf: a full server evicts locks that are held.';
      return policy === 'noeviction' ? { seen: policy } : bad(policy, advice, 'this Redis evicts locks when its memory is full');
    },
    async persistence() {
      const advice = 'Set appendonly yes and appendfsync always, or check the fencing token at the resource.';
      if ((await known('aof_enabled')) !== '1') return warning('no append-only file', advice, 'this Redis forgets locks when it restarts');
      if ((await info).get('aof_last_write_status') === 'err') {
        const seen = 'the last write of the append-only file has failed';
        return bad(seen, 'Look at the disk and the log of the server.', 'this Redis cannot write to its disk', 'correctness');
      }
      const policy = await setting('appendfsync');
      const because = policy === 'everysec' ? 'this Redis fsyncs every second' : 'this Redis leaves it to the system when to fsync';
      return policy === 'always' ? { seen: `appendfsync ${policy}` } : warning(`appendfsync ${policy}`, advice, because);
    },
    async replication() {
      const replicas = Number(await known('connected_slaves'));
      if (replicas === 0) return { seen: 'no replicas' };
      const least = await setting('min-replicas-to-write').catch(() => undefined);
      // The nodes of a Cluster stop a master that is cut off.
      const goesOn = least === '0' && (await info).get('cluster_enabled') !== '1';
      const seen = `replicas: ${replicas}${goesOn ? ', min-replicas-to-write 0' : ''}`;
      const remedy = goesOn ? ' Set min-replicas-to-write 1: else a master that is cut off goes on granting locks.' : '';
      const advice = `A failover can forget a grant: check the fencing token at the resource.${remedy}`;
      return warning(seen, advice, 'this Redis has replicas');
    },
  });
  const { host, port } = node?.options ?? {};
  return node ? checks.map((check) => (check.state === 'ok' ? check : { ...check, seen: `${host}:${port}: ${check.seen}` })) : checks;
}
