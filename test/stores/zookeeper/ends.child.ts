import { Locks } from 'nestjs-distributed-lock/core';
import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';

// Takes a key, waits for it in vain, and closes nothing.
const [connectionString] = process.argv.slice(2) as [string];
const [locks, others] = [1, 2].map(() => new Locks(zookeeperStore({ connectionString }), { logger: false })) as [Locks, Locks];
const lease = await locks.acquire('ends');
await others.acquire('ends', { waitTimeout: 300 }).catch(() => undefined);
await lease.release();
