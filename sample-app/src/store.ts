import { Cluster, Redis } from 'ioredis';
import type { LockStore } from 'nestjs-distributed-lock';
import { fileStore } from 'nestjs-distributed-lock/file';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Pool } from 'pg';
import { FileStockStore } from './stock/file-stock.store.js';
import { PostgresStockStore } from './stock/postgres-stock.store.js';
import { RedisStockStore } from './stock/redis-stock.store.js';
import type { StockStore } from './stock/stock.store.js';

/** Where the locks are, and the stock: all instances of the shop name the same place. An app of yours needs one of these. */
const url = new URL(process.env.STORE_URL || pathToFileURL(join(tmpdir(), 'stock-shop')));

export function lockStore(): LockStore {
  switch (url.protocol) {
    case 'redis:':
    case 'rediss:':
      return redisStore({ url: url.href });
    case 'redis-cluster:': // any node of a Redis Cluster
      return redisStore({ cluster: [nodeOf(url)] });
    case 'postgres:':
    case 'postgresql:':
      return postgresStore({ url: url.href, schema: 'create' });
    case 'file:': // without a server, for instances on one machine
      return fileStore({ directory: join(fileURLToPath(url), 'locks') });
    default:
      throw new Error(`STORE_URL must begin with redis:, rediss:, redis-cluster:, postgres: or file:, not with ${url.protocol}`);
  }
}

export function stockStore(): StockStore {
  if (url.protocol === 'file:') return new FileStockStore(join(fileURLToPath(url), 'stock'));
  if (url.protocol.startsWith('postgres')) {
    const pool = new Pool({ connectionString: url.href, max: 20 });
    pool.on('error', (error) => console.error(error)); // of an idle connection: without a listener it ends the process
    return new PostgresStockStore(pool);
  }
  return new RedisStockStore(url.protocol === 'redis-cluster:' ? new Cluster([nodeOf(url)]) : new Redis(url.href));
}

function nodeOf({ hostname, port }: URL): { host: string; port: number } {
  return { host: hostname, port: Number(port || 6379) };
}
