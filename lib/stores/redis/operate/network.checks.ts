import type { DoctorCheck } from '../../../core/model/doctor-report.js';
import { checkOf, type Finding } from '../../../core/store/store-doctor.js';
import { dateOf, inTime, now } from '../../../core/util/clock.js';
import type { RedisConnection } from '../connection/redis.connection.js';
import { listOf } from '../scripts/redis.replies.js';
import { RedisInfo } from './redis.info.js';
import type { RedisNode } from './redis.node.js';

const CONNECTIONS = 3;
/** Milliseconds for which a script, or anything else, keeps the server busy. */
const SLOW = 100;
const DAY = 86_400;

/** What a connection shows of where it leads. */
export function addressChecks(connection: RedisConnection, node: RedisNode): Promise<DoctorCheck>[] {
  return [
    checkOf({ id: 'address', name: 'one server behind the address', touches: ['G2'] }, () => addressOf(connection)),
    checkOf({ id: 'cluster', name: 'Cluster', touches: ['G8'] }, () => clusterOf(connection, node)),
  ];
}

/** What keeps connections or the server itself from answering. */
export function serviceChecks(node: RedisNode): Promise<DoctorCheck>[] {
  return [
    checkOf({ id: 'slow-scripts', name: 'the server stood still', touches: ['G4', 'G9'] }, () => slowOf(node)),
    checkOf({ id: 'idle-connections', name: 'idle connections', touches: ['G8'] }, () => idleOf(node)),
    checkOf({ id: 'pubsub-buffer', name: 'buffer of subscribers', touches: ['G8'] }, () => buffersOf(node)),
  ];
}

async function addressOf({ client, requestTimeout }: RedisConnection): Promise<Finding> {
  if (client.isCluster) return { seen: 'a Cluster, whose nodes are known' };
  const servers = await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      const other = client.duplicate({ lazyConnect: true, retryStrategy: null, connectTimeout: requestTimeout });
      other.on('error', () => undefined);
      const told = other.connect().then(() => other.call('INFO'));
      try {
        const late = (): Error => new Error(`another connection gave no answer within ${requestTimeout} ms`);
        const info = new RedisInfo(String(await inTime(requestTimeout, told, late)));
        return `${info.known('run_id').slice(0, 8)} (${info.field('role')})`;
      } finally {
        other.disconnect();
      }
    }),
  );
  const distinct = [...new Set(servers)];
  if (distinct.length === 1) return { seen: `${CONNECTIONS} connections lead to the same server` };
  return {
    state: 'bad',
    seen: `${CONNECTIONS} connections lead to ${distinct.length} servers: ${distinct.join(', ')}`,
    advice: 'Use the address of one server, a Cluster, or sentinels: a lock on one server says nothing to another one.',
    limits: { purpose: 'efficiency', because: 'several servers answer at this address' },
  };
}

async function clusterOf({ client }: RedisConnection, node: RedisNode): Promise<Finding> {
  const info = await node.info();
  if (info.known('cluster_enabled') === '0') return { seen: 'no' };
  const state = new RedisInfo(String(await node.call('CLUSTER', 'INFO'))).field('cluster_state');
  if (state !== 'ok') {
    const limits = { purpose: 'efficiency', because: 'the Cluster is not complete' } as const;
    return { state: 'bad', seen: `cluster_state ${state}`, advice: 'Bring its nodes back: redis-cli --cluster check.', limits };
  }
  if (client.isCluster) return { seen: 'yes, and it is complete' };
  return {
    state: 'bad',
    seen: 'one node of a Cluster, asked as a single server',
    advice: 'Use redisStore({ cluster: […] }): keys of other nodes are refused here.',
    limits: { purpose: 'efficiency', because: 'other nodes of the Cluster have most keys' },
  };
}

async function slowOf(node: RedisNode): Promise<Finding> {
  const [log, latest] = await Promise.all([node.call('SLOWLOG', 'GET', 128), node.call('LATENCY', 'LATEST')]);
  const since = dateOf(now()) / 1000 - DAY;
  const found: { what: string; took: number }[] = [];
  for (const entry of listOf(log)) {
    const [, at, microseconds, words] = listOf(entry);
    const name = String(listOf(words)[0]).toUpperCase();
    if (Number(at) > since && /^(EVAL|EVALSHA|FCALL)/.test(name)) found.push({ what: name, took: Number(microseconds) / 1000 });
  }
  for (const event of listOf(latest)) {
    const [name, at, , longest] = listOf(event);
    if (Number(at) > since) found.push({ what: String(name), took: Number(longest) });
  }
  const worst = found.sort((a, b) => b.took - a.took)[0];
  if (!worst || worst.took <= SLOW) return { seen: `no script of more than ${SLOW} ms is in the log of a day` };
  return {
    state: 'warn',
    seen: `${Math.round(worst.took).toLocaleString('en-US')} ms (${worst.what})`,
    advice: 'Find it with SLOWLOG GET and LATENCY DOCTOR. A keyTimeout must be much longer than such a pause.',
  };
}

async function idleOf(node: RedisNode): Promise<Finding> {
  const [timeout, keepalive] = await Promise.all([node.setting('timeout'), node.setting('tcp-keepalive')]);
  const seen = `timeout ${timeout}, tcp-keepalive ${keepalive}`;
  const problems = [
    ...(timeout === '0' ? [] : ['CONFIG SET timeout 0: the server closes connections that send nothing.']),
    ...(keepalive === '0' ? ['CONFIG SET tcp-keepalive 300: connections of machines that are gone stay open.'] : []),
  ];
  return problems.length === 0 ? { seen } : { state: 'warn', seen, advice: problems.join(' ') };
}

async function buffersOf(node: RedisNode): Promise<Finding> {
  const [limit, info] = await Promise.all([node.setting('client-output-buffer-limit'), node.info()]);
  const [, hard = '?', soft = '?', time = '?'] = /pubsub (\d+) (\d+) (\d+)/.exec(limit) ?? [];
  const cut = info.number('client_output_buffer_limit_disconnections');
  const seen = `pubsub ${hard} ${soft} ${time}${cut === 0 ? '' : `; ${cut} clients were cut off`}`;
  if (cut === 0 && (hard === '0' || Number(hard) >= 1_048_576)) return { seen };
  const advice = 'CONFIG SET client-output-buffer-limit "pubsub 33554432 8388608 60": subscribers that are cut off are not woken.';
  return { state: 'warn', seen, advice };
}
