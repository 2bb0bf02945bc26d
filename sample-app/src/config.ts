import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Settings of the samples, from their environment. All times are milliseconds. */
export const config = {
  /** 0: any free port, printed to stdout and sent to a parent process. */
  port: wholeNumber('PORT', 3000),
  /** `redis://…`, or the path of a unix socket. Stock and locks are there. */
  redisUrl: process.env.REDIS_URL?.replace(/^unix:\/\//, '') || undefined,
  /** `host:port` of nodes of a Redis Cluster, with commas between them. Stock and locks are there. */
  redisCluster: process.env.REDIS_CLUSTER ? process.env.REDIS_CLUSTER.split(',').map(nodeOf) : undefined,
  /** `postgres://…`. Stock and locks are there, and not in Redis. */
  databaseUrl: process.env.DATABASE_URL || undefined,
  /** Where stock and locks are if no server is named: the instances of one machine that name the same folder share them. */
  directory: process.env.SHOP_DIRECTORY || join(tmpdir(), 'stock-shop'),
  /** Put before every key of a lock, and before every key in Redis. */
  namespace: process.env.SHOP_NAMESPACE ?? '',
  /** Password of the user `ops`, who may see and release locks at `/locks`; empty: there is no such page. */
  dashboardPassword: process.env.DASHBOARD_PASSWORD ?? '',
  /** How long a sale takes, between looking at the shelf and writing down what is left. */
  work: wholeNumber('WORK_MS', 2),
  /** How long one sale in twenty takes: a slow query, a garbage collection. Default: as long as the others. */
  slowWork: wholeNumber('SLOW_WORK_MS', wholeNumber('WORK_MS', 2)),
  /** How long the naive lock lasts. */
  naiveExpiry: wholeNumber('NAIVE_EXPIRY_MS', 1000),
  /** Seconds between two stocktakes: a divisor of 60. */
  stocktakeSeconds: wholeNumber('STOCKTAKE_SECONDS', 10),
  /** The leader's lease: one that dies is succeeded within it and a second. */
  keyTimeout: wholeNumber('KEY_TIMEOUT_MS', 3000),
  /** How long the leader works for each line in its ledger. */
  jobMs: wholeNumber('JOB_MS', 50),
};

function nodeOf(address: string): { host: string; port: number } {
  const { hostname: host, port } = new URL(`redis://${address.trim()}`);
  return { host, port: Number(port || 6379) };
}

function wholeNumber(name: string, fallback: number): number {
  const text = process.env[name] ?? '';
  if (text === '') return fallback;
  if (!/^\d+$/.test(text)) throw new Error(`${name} must be a whole number, not "${text}".`);
  return Number(text);
}
