// Takes a free key and gives it back, again and again, in a thread of its own; tells how long that took when it is asked.
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { setTimeout as pause } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

const locks = new Locks(redisStore({ url: `redis://127.0.0.1:${workerData.port}` }), { logger: false });
const times = [];
parentPort.on('message', () => parentPort.postMessage(times.splice(0)));
for (;;) {
  const start = performance.now();
  await (await locks.acquire('lone')).release();
  times.push((performance.now() - start) * 1000);
  if (times.length % 20 === 0) await pause(1);
}
