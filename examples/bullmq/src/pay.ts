// Adds thirty payments of 1 to two accounts, waits for the workers, and shows the balances.
import { Queue, QueueEvents } from 'bullmq';
import { Redis } from 'ioredis';

const url = process.env.REDIS_URL ?? 'redis://localhost:6379';
const queue = new Queue('payments', { connection: { url } });
const events = new QueueEvents('payments', { connection: { url } });
const redis = new Redis(url);

await redis.del('balance:alice', 'balance:bob');
const jobs = await queue.addBulk(
  Array.from({ length: 30 }, (_, index) => ({ name: 'payment', data: { account: index % 2 ? 'alice' : 'bob', amount: 1 } })),
);
await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
console.log(`alice has ${await redis.get('balance:alice')}, bob has ${await redis.get('balance:bob')}`);

await Promise.all([events.close(), queue.close(), redis.quit()]);
