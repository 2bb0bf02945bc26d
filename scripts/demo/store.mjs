import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { NotPossible } from './run.mjs';

const ON_PATH = JSON.stringify({ kind: 'local', command: 'redis-server' });

/** Yours where the environment names one, else a private one. Without a wish and without any Redis: memory. */
export async function openStore({ store }, leftovers) {
  const { REDIS_URL: url, POSTGRES_URL: postgresUrl } = process.env;
  if (store === 'postgres') return postgresUrl ? yourPostgres(postgresUrl, leftovers) : ourPostgres(leftovers);
  if (store === 'memory') return inMemory('');
  if (store !== 'cluster' && url) return yours(url, leftovers);
  const hasServer = spawnSync('redis-server', ['--version']).status === 0;
  if (!hasServer && store === undefined) return inMemory(', as there is neither REDIS_URL nor a redis-server on the PATH');
  if (!hasServer) throw missingServer(store);
  return store === 'cluster' ? ourCluster(leftovers) : ours(leftovers);
}

function missingServer(store) {
  return new NotPossible(`--store ${store} needs a redis-server on the PATH, and there is none. Install it${store === 'redis' ? ', or set REDIS_URL' : ''}:
  Debian, Ubuntu  apt-get install redis-server
  macOS           brew install redis`);
}

function inMemory(why) {
  return { description: `Store: the memory of one process${why}.`, url: '', namespace: '', isShared: false };
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
  return {
    description: `Store: the Postgres of POSTGRES_URL; its schema ${schema} goes at the end.`,
    postgresUrl: own.href,
    namespace: '',
    isShared: true,
  };
}

async function ourPostgres(leftovers) {
  const { startPostgres } = await import('../../test/support/postgres-server.ts');
  const starting = startPostgres({ durable: true });
  leftovers.add(async () => (await starting).stop());
  const server = await starting;
  return { description: 'Store: a private Postgres of this run.', postgresUrl: server.url, namespace: '', isShared: true };
}

async function yours(url, leftovers) {
  const namespace = `demo-${randomUUID()}:`;
  const client = new Redis(url.replace(/^unix:\/\//, ''), { lazyConnect: true, retryStrategy: null });
  client.on('error', () => undefined); // the commands tell
  await client.connect();
  leftovers.add(async () => {
    for await (const keys of client.scanStream({ match: `*${namespace}*`, count: 1000 })) {
      if (keys.length > 0) await client.unlink(keys);
    }
    await client.quit();
  });
  return { description: `Store: the Redis of REDIS_URL; keys begin with ${namespace} and go at the end.`, url, namespace, isShared: true };
}

/** The servers end with this process, however it ends. */
async function ourCluster(leftovers) {
  process.env.TEST_REDIS_SERVER = ON_PATH;
  const { startCluster } = await import('../../test/support/redis-cluster.ts');
  const starting = startCluster({ masters: 3 });
  leftovers.add(async () => (await starting).stop());
  const { addresses } = await starting;
  const clusterNodes = addresses.map(({ host, port }) => `${host}:${port}`).join(',');
  const description = `Store: a private Redis Cluster of this run, whose three nodes are ${clusterNodes.replaceAll(',', ', ')}.`;
  return { description, clusterNodes, namespace: '', isShared: true };
}

async function ours(leftovers) {
  process.env.TEST_REDIS_SERVER = ON_PATH;
  const { startRedis } = await import('../../test/support/redis-server.ts');
  const starting = startRedis();
  leftovers.add(async () => (await starting).stop());
  const server = await starting;
  return { description: 'Store: a private redis-server of this run.', url: server.path, namespace: '', isShared: true };
}
