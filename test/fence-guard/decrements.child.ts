// Takes one of a stock, again and again, as several callers: lock, transaction, read, write. It never looks at its clock: what it believes about its
// lease is what a holder believes that was paused. Arguments: a JSON of `DecrementsJob`.
import { Redis } from 'ioredis';
import { Locks, LockError, LockLostError } from 'nestjs-distributed-lock/core';
import { fenceGuard, pg } from 'nestjs-distributed-lock/fence-guard';
import { redisStore } from 'nestjs-distributed-lock/redis';
import pgDriver from 'pg';
import { tellParent } from '../support/child.js';
import { pause } from '../support/time.js';
import type { DecrementsDone, DecrementsJob } from './decrements.js';

const job = JSON.parse(process.argv[2]!) as DecrementsJob;
const pool = new pgDriver.Pool({ ...job.postgres, max: job.callers * job.skus });
const redis = new Redis(job.redis.path);
redis.on('error', () => undefined); // the calls tell
const locks = new Locks(redisStore({ client: redis }), { logger: false });
const fence = fenceGuard({ dialect: 'postgres' });
let left = job.count;
let done = 0;
let refused = 0;
let troubles = 0;

async function takeOne(sku: string, key: string, token: number | null): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    if (job.guarded) await fence.check(pg(client), { lease: { key, fencingToken: token, assertHeld: () => undefined } });
    const { rows } = await client.query<{ units: number }>('SELECT units FROM stock WHERE sku = $1', [sku]);
    await new Promise(setImmediate);
    await client.query('UPDATE stock SET units = $1 WHERE sku = $2', [rows[0]!.units - 1, sku]);
    await client.query('COMMIT');
    done++;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}

async function call(sku: string): Promise<void> {
  const lock = locks.mutex(`stock:${sku}`);
  while (left > 0) {
    left--;
    try {
      const options = { keyTimeout: job.keyTimeout, waitTimeout: 5_000, retryInterval: 20, onLost: 'ignore' } as const;
      await lock.using((lease) => takeOne(sku, lease.key, lease.fencingToken), options);
    } catch (error) {
      left++;
      if (!(error instanceof LockError)) throw error;
      if (error instanceof LockLostError) refused++;
      else troubles++;
      await pause(5);
    }
  }
}

const calls = Array.from({ length: job.skus * job.callers }, (_, index) => call(`sku-${index % job.skus}`));
void Promise.all(calls).then(async () => {
  await locks.close();
  redis.disconnect();
  await pool.end();
  tellParent({ type: 'done', done, refused, troubles } satisfies DecrementsDone);
  process.disconnect();
});
