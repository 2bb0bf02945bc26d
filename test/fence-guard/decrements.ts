import pgDriver from 'pg';
import { fenceGuard, pg } from 'nestjs-distributed-lock/fence-guard';
import { forkChild, type Child } from '../support/child.js';
import { startPostgres, type PostgresConnection } from '../support/postgres-server.js';
import { startRedis } from '../support/redis-server.js';
import { pause } from '../support/time.js';

interface DecrementsOptions {
  /** how many units are taken in all */
  count: number;
  /** whether each transaction begins with the guard */
  guarded: boolean;
}

export interface DecrementsJob extends DecrementsOptions {
  keyTimeout: number;
  skus: number;
  callers: number;
  postgres: PostgresConnection;
  redis: { path: string };
}

export interface DecrementsDone {
  type: 'done';
  /** transactions that were committed */
  done: number;
  /** those that the guard refused */
  refused: number;
  /** waits that ended without the lock */
  troubles: number;
}

const PROCESSES = 4;
/** Milliseconds between two faults. */
const FAULT_EVERY = 150;
/** Lease length, milliseconds; pauses are longer. */
const KEY_TIMEOUT = 150;
const SKUS = 2;
const CALLERS = 2;

/**
 * Processes take units of a stock in Postgres under locks in Redis, while each is stopped for longer than its lease now and then, and Redis loses its data:
 * by `FLUSHALL`, and by a crash without persistence. Counts the updates that were lost.
 */
export async function runDecrements({ count, guarded }: DecrementsOptions) {
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  const client = new pgDriver.Client(postgres.connection);
  const workers: Child<DecrementsDone>[] = [];
  try {
    await client.connect();
    await client.query('CREATE TABLE stock (sku text PRIMARY KEY, units int NOT NULL)');
    for (let sku = 0; sku < SKUS; sku++) await client.query('INSERT INTO stock VALUES ($1, 0)', [`sku-${sku}`]);
    await fenceGuard({ dialect: 'postgres' }).migrate(pg(client));
    // eslint-disable-next-line tests/no-short-lease -- leases are to end before their holders are done
    const limits = { keyTimeout: KEY_TIMEOUT, skus: SKUS, callers: CALLERS };
    const job = { guarded, ...limits, postgres: postgres.connection, redis: { path: redis.path! } };
    const start = performance.now();
    for (let worker = 0; worker < PROCESSES; worker++) {
      const share = Math.floor(count / PROCESSES) + (worker < count % PROCESSES ? 1 : 0);
      const args = [JSON.stringify({ ...job, count: share } satisfies DecrementsJob)];
      workers.push(await forkChild<DecrementsDone>('test/fence-guard/decrements.child.ts', { args }));
    }
    const faults = { pauses: 0, flushes: 0, restarts: 0 };
    const admin = redis.client();
    for (let turn = 0; workers.some((worker) => worker.running); turn++) {
      await pause(FAULT_EVERY);
      const worker = workers[turn % workers.length]!;
      if (turn % 3 === 0 && worker.running) {
        worker.pause();
        await pause(1.5 * KEY_TIMEOUT);
        worker.resume();
        faults.pauses++;
      } else if (turn % 40 === 39) {
        await redis.restart();
        faults.restarts++;
      } else {
        await admin.flushall();
        faults.flushes++;
      }
    }
    const reports = await Promise.all(workers.map((worker) => worker.waitFor('done')));
    const sum = (of: (report: DecrementsDone) => number) => reports.reduce((total, each) => total + of(each), 0);
    const { rows } = await client.query<{ taken: string }>('SELECT -sum(units) AS taken FROM stock');
    const done = sum((each) => each.done);
    const seconds = Math.round((performance.now() - start) / 1000);
    return {
      done,
      /** committed, but not in the stock */
      lost: done - Number(rows[0]!.taken),
      refused: sum((each) => each.refused),
      troubles: sum((each) => each.troubles),
      ...faults,
      seconds,
    };
  } finally {
    await Promise.all(workers.map((worker) => worker.kill()));
    await client.end();
    await Promise.all([postgres.stop(), redis.stop()]);
  }
}
