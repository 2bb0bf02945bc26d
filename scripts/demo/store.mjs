import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';

/** Your Redis, else a private one, else memory. */
export async function openStore({ embedded }, leftovers) {
  const url = process.env.REDIS_URL;
  if (!embedded && url) return yours(url, leftovers);
  if (!embedded && spawnSync('redis-server', ['--version']).status === 0) return ours(leftovers);
  const why = embedded ? '' : ', as there is neither REDIS_URL nor a redis-server on the PATH';
  return { description: `Store: the memory of one process${why}.`, url: '', namespace: '', isShared: false };
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

async function ours(leftovers) {
  process.env.TEST_REDIS_SERVER = JSON.stringify({ kind: 'local', command: 'redis-server' });
  const { startRedis } = await import('../../test/support/redis-server.ts');
  const starting = startRedis();
  leftovers.add(async () => (await starting).stop());
  const server = await starting;
  return { description: 'Store: a private redis-server of this run.', url: server.path, namespace: '', isShared: true };
}
