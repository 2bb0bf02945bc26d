import { BullModule, getQueueToken } from '@nestjs/bullmq';
import { Test } from '@nestjs/testing';
import type { Job, Queue } from 'bullmq';
import { DistributedLockModule, Locks } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { start } from '../nest/boot.js';
import { eventually } from '../support/eventually.js';
import type { RedisServer } from '../support/redis-server.js';

/** A running app with one queue and its locks on one Redis; closed after the test. Its jobs are added by `add`. */
export async function bootQueue(server: RedisServer, providers: object[], { isQueueFirst = false, name = 'sales' } = {}) {
  const lock = DistributedLockModule.forRoot({ store: redisStore({ options: server.connection }), logger: false });
  const bull = [BullModule.forRoot({ connection: server.connection }), BullModule.registerQueue({ name })];
  const imports = isQueueFirst ? [...bull, lock] : [lock, ...bull];
  const app = await start(Test.createTestingModule({ imports, providers: providers as never[] }));
  const queue = app.get<Queue>(getQueueToken(name));
  const locks = app.get(Locks);
  const acquired: string[] = [];
  locks.on('acquired', ({ key }) => void acquired.push(key));
  return {
    app,
    locks,
    queue,
    acquired,
    get: <T>(type: new (...args: never[]) => T): T => app.get(type),
    /** What a job has returned, when it is completed. */
    resultOf: async (job: Job): Promise<unknown> => {
      await eventually(() => job.isCompleted());
      return (await queue.getJob(job.id!))?.returnvalue;
    },
    add: (data: object, options: object = {}): Promise<Job> => queue.add('job', data, options),
  };
}
