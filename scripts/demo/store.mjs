import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Explained } from '../leftovers.mjs';

export const STORES = ['redis', 'cluster', 'postgres', 'file'];

const isPostgres = (url) => /^postgres(ql)?:/.test(url ?? '');

/** `description`: says which store it is. `url`: the `STORE_URL` of the sample app. A server is the reader's where the environment names one, else private to the run. */
export async function openStore(store, leftovers) {
  const { REDIS_URL: redisUrl, DATABASE_URL: databaseUrl } = process.env;
  if (store === 'file') return files('', leftovers);
  if (store === 'postgres') return isPostgres(databaseUrl) ? yourPostgres(databaseUrl, leftovers) : ourPostgres(leftovers);
  if (store === 'cluster') return ourCluster(leftovers);
  if (redisUrl) return yourRedis(redisUrl, leftovers);
  if (store === undefined && isPostgres(databaseUrl)) return yourPostgres(databaseUrl, leftovers);
  if (store === 'redis' || hasServer()) return ourRedis(leftovers);
  const seen = databaseUrl ? 'DATABASE_URL is none of Postgres, and there is' : 'there is';
  return files(`, as ${seen} neither REDIS_URL nor a redis-server on the PATH`, leftovers);
}

const hasServer = () => spawnSync('redis-server', ['--version']).status === 0;

/** Makes the servers of the run those on the PATH, which the launchers of the tests start. */
function useServerOnPath(store) {
  if (!hasServer())
    throw new Explained(`--store ${store} needs a redis-server on the PATH, and there is none. Install it${store === 'redis' ? ', or set REDIS_URL' : ''}:
  Debian, Ubuntu  apt-get install redis-server
  macOS           brew install redis`);
  process.env.TEST_REDIS_SERVER = JSON.stringify({ kind: 'local', command: 'redis-server' });
}

function files(why, leftovers) {
  const folder = mkdtempSync(join(tmpdir(), 'stock-shop-'));
  leftovers.add(async () => rmSync(folder, { recursive: true, force: true }));
  return { description: `Store: files of this machine, in ${folder}${why}.`, url: pathToFileURL(folder).href };
}

/** In a schema of its own, which goes at the end. */
async function yourPostgres(url, leftovers) {
  const { default: pg } = await import('pg');
  const schema = `demo_${randomUUID().replaceAll('-', '')}`;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`CREATE SCHEMA ${schema}`);
  leftovers.add(async () => {
    await client.query(`DROP SCHEMA ${schema} CASCADE`);
    await client.end();
  });
  const own = new URL(url);
  own.searchParams.set('options', `-csearch_path=${schema}`);
  return { description: `Store: the Postgres of DATABASE_URL; its schema ${schema} goes at the end.`, url: own.href };
}

async function ourPostgres(leftovers) {
  const { startPostgres } = await import('../../test/support/postgres-server.ts');
  const { url } = await leftovers.addServer(startPostgres({ durable: true }));
  return { description: 'Store: a private Postgres of this run.', url };
}

async function yourRedis(url, leftovers) {
  const { Redis } = await import('ioredis');
  const prefix = `demo-${randomUUID()}:`;
  const client = new Redis(url, { lazyConnect: true, retryStrategy: null });
  client.on('error', () => undefined); // the commands reject
  await client.connect();
  leftovers.add(async () => {
    for await (const keys of client.scanStream({ match: `*${prefix}*`, count: 1000 })) {
      if (keys.length > 0) await client.unlink(keys);
    }
    await client.quit();
  });
  const own = new URL(url);
  own.searchParams.set('keyPrefix', prefix); // an option of ioredis
  return { description: `Store: the Redis of REDIS_URL; keys begin with ${prefix} and go at the end.`, url: own.href };
}

/** The servers end with this process, however it ends. */
async function ourCluster(leftovers) {
  useServerOnPath('cluster');
  const { startCluster } = await import('../../test/support/redis-cluster.ts');
  const { addresses } = await leftovers.addServer(startCluster({ masters: 3 }));
  const nodes = addresses.map(({ host, port }) => `${host}:${port}`);
  const description = `Store: a private Redis Cluster of this run, whose three nodes are ${nodes.join(', ')}.`;
  return { description, url: `redis-cluster://${nodes[0]}` };
}

async function ourRedis(leftovers) {
  useServerOnPath('redis');
  const { startRedis } = await import('../../test/support/redis-server.ts');
  const { port } = await leftovers.addServer(startRedis({ port: 'free' }));
  return { description: 'Store: a private redis-server of this run.', url: `redis://127.0.0.1:${port}` };
}
