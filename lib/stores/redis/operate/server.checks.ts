import type { DoctorCheck } from '../../../core/model/doctor-report.js';
import { checkOf, type Finding } from '../../../core/store/store-doctor.js';
import type { RedisInfo } from './redis.info.js';
import type { RedisNode } from './redis.node.js';

/** Below it, nothing here was ever tried. */
const UNUSABLE = '5.0';
const FULL = 0.8;

/** What INFO says of a server, and CONFIG where it is needed. */
export function serverChecks(node: RedisNode): Promise<DoctorCheck>[] {
  const of = (look: (info: RedisInfo, node: RedisNode) => Finding | Promise<Finding>) => async () => look(await node.info(), node);
  const evicts = { purpose: 'efficiency', because: 'it is unknown whether this Redis evicts keys' } as const;
  const saves = {
    purpose: 'correctness',
    because: 'it is unknown whether this Redis has written a grant to the disk when it answers',
  } as const;
  const copies = { purpose: 'correctness', because: 'it is unknown whether this Redis has replicas' } as const;
  return [
    checkOf({ id: 'version', name: 'version', touches: ALL }, of(versionOf)),
    checkOf({ id: 'eviction', name: 'maxmemory-policy', touches: ['G2'], unseen: evicts }, of(policyOf)),
    checkOf({ id: 'evicted', name: 'evicted keys', touches: ['G2'] }, of(evictedOf)),
    checkOf({ id: 'memory', name: 'memory', touches: ['G9'] }, of(memoryOf)),
    checkOf({ id: 'persistence', name: 'persistence', touches: ['G2'], unseen: saves }, of(persistenceOf)),
    checkOf({ id: 'replication', name: 'replication', touches: ['G2'], unseen: copies }, of(replicationOf)),
    checkOf({ id: 'clients', name: 'connections', touches: ['G9'] }, of(clientsOf)),
  ];
}

const ALL = Array.from({ length: 10 }, (_, index) => `G${index + 1}`);

function versionOf(info: RedisInfo): Finding {
  const { ageAdvice: advice, server } = info;
  info.known('redis_version');
  if (advice !== undefined) return { state: info.isOlderThan(UNUSABLE) ? 'bad' : 'warn', seen: server, advice };
  const other = ['dragonfly_version', 'keydb_version', 'garnet_version'].find((name) => info.field(name) !== undefined);
  if (other === undefined) return { seen: server };
  return {
    state: 'warn',
    seen: `${other.split('_')[0]} ${info.field(other)}`,
    advice: 'This package is not tested with this server. Use Redis or Valkey.',
  };
}

function policyOf(info: RedisInfo): Finding {
  const policy = info.known('maxmemory_policy');
  const { evictionAdvice: advice } = info;
  if (advice === undefined) return { seen: policy };
  const limits = { purpose: 'efficiency', because: 'this Redis evicts locks when its memory is full' } as const;
  return { state: 'bad', seen: policy, advice: 'CONFIG SET maxmemory-policy noeviction, and the same in redis.conf.', limits };
}

function evictedOf(info: RedisInfo): Finding {
  const evicted = Number(info.known('evicted_keys'));
  if (evicted === 0) return { seen: 'none since the server has started' };
  const limits = { purpose: 'efficiency', because: 'this Redis has evicted keys' } as const;
  const advice = 'Use a Redis of its own for locks. CONFIG RESETSTAT sets the count to 0.';
  return { state: 'bad', seen: `${evicted.toLocaleString('en-US')} since the server has started`, advice, limits };
}

function memoryOf(info: RedisInfo): Finding {
  const [used, most, rss, whole] = ['used_memory', 'maxmemory', 'used_memory_rss', 'total_system_memory'].map((name) =>
    info.number(name),
  ) as [number, number, number, number];
  info.known('used_memory');
  const [share, of] = most > 0 ? [used / most, 'maxmemory'] : [whole > 0 ? rss / whole : 0, 'the memory of the machine; no maxmemory'];
  const seen = `${Math.round(share * 100)} % of ${of}`;
  if (share <= FULL) return { seen };
  return { state: 'warn', seen, advice: 'Give it more memory: a full server refuses locks (OOM), or is ended by the system.' };
}

async function persistenceOf(info: RedisInfo, node: RedisNode): Promise<Finding> {
  const isLogged = info.known('aof_enabled') === '1';
  const always = 'Set appendonly yes and appendfsync always, or check the fencing token at the resource.';
  const loses = (because: string) => ({ purpose: 'correctness', because }) as const;
  if (isLogged && info.field('aof_last_write_status') === 'err') {
    const seen = 'the last write of the append-only file has failed';
    return {
      state: 'bad',
      seen,
      advice: 'Look at the disk and the log of the server.',
      limits: loses('this Redis cannot write to its disk'),
    };
  }
  if (!isLogged) {
    const save = await node.setting('save').catch(() => undefined);
    const seen = `no append-only file${save === undefined ? '' : save === '' ? ', no snapshots' : `, snapshots (${save})`}`;
    return { state: 'warn', seen, advice: always, limits: loses('this Redis forgets locks when it restarts') };
  }
  const sync = await node.setting('appendfsync');
  if (sync === 'always') return { seen: 'appendfsync always' };
  const because = sync === 'everysec' ? 'this Redis fsyncs every second' : 'this Redis leaves it to the system when to fsync';
  return { state: 'warn', seen: `appendfsync ${sync}`, advice: always, limits: loses(because) };
}

async function replicationOf(info: RedisInfo, node: RedisNode): Promise<Finding> {
  if (info.known('role') !== 'master') {
    const seen = `a replica of ${info.field('master_host')}:${info.field('master_port')}`;
    const limits = { purpose: 'efficiency', because: 'this is a replica, which gives no locks' } as const;
    return { state: 'bad', seen, advice: 'Use the address of the master, or sentinels.', limits };
  }
  const replicas = info.number('connected_slaves');
  if (replicas === 0) return { seen: 'no replicas' };
  const offset = info.number('master_repl_offset');
  const lags = Array.from(
    { length: replicas },
    (_, index) => offset - Number(/offset=(\d+)/.exec(info.field(`slave${index}`) ?? '')?.[1] ?? offset),
  );
  const least = await node.setting('min-replicas-to-write').catch(() => undefined);
  const forgets = 'A failover can forget a grant: check the fencing token at the resource.';
  // Of a Cluster: its nodes stop a master that is cut off.
  const goesOn = least === '0' && info.field('cluster_enabled') !== '1';
  return {
    state: 'warn',
    seen: `replicas: ${replicas}, up to ${Math.max(0, ...lags).toLocaleString('en-US')} bytes behind${goesOn ? ', min-replicas-to-write 0' : ''}`,
    advice: goesOn ? `${forgets} Set min-replicas-to-write 1: else a master that is cut off goes on granting locks.` : forgets,
    limits: { purpose: 'correctness', because: 'this Redis has replicas' },
  };
}

async function clientsOf(info: RedisInfo, node: RedisNode): Promise<Finding> {
  const count = Number(info.known('connected_clients'));
  const most = Number(info.field('maxclients') ?? (await node.setting('maxclients')));
  const seen = `${count} of ${most}`;
  if (count <= FULL * most) return { seen };
  return { state: 'warn', seen, advice: 'Raise maxclients: each process has two connections, one more client than that is refused.' };
}
