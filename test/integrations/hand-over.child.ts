// A worker of BullMQ that hangs at a point of its job, to be killed there, or does the job. Its shop notes at Redis what it has done.
import { type ConnectionOptions, Worker } from 'bullmq';
import { Redis, type RedisOptions } from 'ioredis';
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { tellParent } from '../support/child.js';
import { PatientShipping, Shop } from './hand-over-orders.js';

export type WorkerMessage = { type: 'ready' } | { type: 'hangs' };

const { connection, hangsBefore } = JSON.parse(process.argv[2]!) as {
  connection: RedisOptions & ConnectionOptions;
  hangsBefore?: 'adopt' | 'ship';
};
const redis = new Redis(connection);
const hang = (): Promise<never> => {
  tellParent({ type: 'hangs' } satisfies WorkerMessage);
  return new Promise(() => undefined);
};

class WorkerShop extends Shop {
  override async ship(id: string, token: number | null): Promise<void> {
    if (hangsBefore === 'ship') await hang();
    await super.ship(id, token);
  }
  override async note(line: string): Promise<void> {
    await redis.rpush('notes', line);
  }
}

const locks = new Locks(redisStore({ options: connection }), { defaults: { keyTimeout: 5_000 } });
if (hangsBefore === 'adopt') locks.adopt = hang;
const shipping = new PatientShipping(new WorkerShop(), locks);
const worker = new Worker('orders', (job) => shipping.process(job), {
  connection,
  lockDuration: 1_000,
  stalledInterval: 200,
  maxStalledCount: 5,
});
await worker.waitUntilReady();
tellParent({ type: 'ready' } satisfies WorkerMessage);
