import { Cluster, Redis } from 'ioredis';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Pool } from 'pg';

/** Redis' SET NX PX, for the naive lock, where the sample app has its stock. */
export interface Marks {
  /** Whether the mark was not there. */
  set(name: string, expiry: number): Promise<boolean>;
  delete(name: string): Promise<unknown>;
  close(): Promise<unknown>;
}

export function openMarks(url = process.env.STORE_URL!): Marks {
  if (url.startsWith('file:')) return inFiles(fileURLToPath(url));
  // Without a listener, the error of an idle connection would end the process.
  if (url.startsWith('postgres')) return inPostgres(new Pool({ connectionString: url, max: 20 }).on('error', console.error));
  const { hostname: host, port } = new URL(url);
  return inRedis(url.startsWith('redis-cluster:') ? new Cluster([{ host, port: Number(port) }]) : new Redis(url));
}

function inRedis(redis: Redis | Cluster): Marks {
  return {
    set: async (name, expiry) => (await redis.set(`mark:${name}`, 'taken', 'PX', expiry, 'NX')) === 'OK',
    delete: (name) => redis.del(`mark:${name}`),
    close: () => redis.quit(),
  };
}

function inPostgres(pool: Pool): Marks {
  const table = 'CREATE TABLE IF NOT EXISTS marks (name text PRIMARY KEY, ends_at timestamptz NOT NULL)';
  // Two instances that create a table at the same time would fail.
  const ready = pool.query(`BEGIN; SELECT pg_advisory_xact_lock(1); ${table}; COMMIT`);
  const insert = `INSERT INTO marks AS m VALUES ($1, clock_timestamp() + $2 * interval '1 ms')
    ON CONFLICT (name) DO UPDATE SET ends_at = excluded.ends_at WHERE m.ends_at <= clock_timestamp()`;
  return {
    set: async (name, expiry) => (await ready, (await pool.query(insert, [name, expiry])).rowCount === 1),
    delete: (name) => pool.query('DELETE FROM marks WHERE name = $1', [name]),
    close: () => pool.end(),
  };
}

function inFiles(folder: string): Marks {
  const fileOf = (name: string) => `${folder}/${name}.mark`;
  const remove = (name: string) => rm(fileOf(name), { force: true });
  return {
    async set(name, expiry) {
      const end = await readFile(fileOf(name), 'utf8').catch(() => '');
      if (end !== '' && Number(end) <= Date.now()) await remove(name);
      return writeFile(fileOf(name), String(Date.now() + expiry), { flag: 'wx' }).then(
        () => true,
        () => false,
      );
    },
    delete: remove,
    close: async () => undefined,
  };
}
