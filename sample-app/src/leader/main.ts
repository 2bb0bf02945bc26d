import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Locks, runStandby, type Term } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { config } from '../config.js';
import { Bookkeeper } from './bookkeeper.js';
import { LeaderModule } from './leader.module.js';
import { Ledger } from './ledger.js';

const { redisUrl, namespace, keyTimeout } = config;
if (!redisUrl) throw new Error('Instances elect a leader in a store that they share: set REDIS_URL.');
// The election's own: they outlive each container of the app.
const locks = new Locks(redisStore({ url: redisUrl }), { namespace });

const standby = runStandby({
  locks,
  name: 'bookkeeping',
  keyTimeout,
  create: () => NestFactory.create(LeaderModule, { abortOnError: false, return503OnClosing: true }),
  async prepare(app) {
    await app.get(Ledger).open();
    tell('standing by');
  },
  start,
});

async function start(app: INestApplication, term: Term): Promise<void> {
  app.get(Bookkeeper).term = term;
  const server = (await app.listen(config.port, '127.0.0.1')) as Server;
  tell('leading', (server.address() as AddressInfo).port);
}

/** To the console, and to a parent process. */
function tell(type: string, port?: number): void {
  console.log(port === undefined ? `${process.pid} is ${type}` : `${process.pid} is ${type} at http://127.0.0.1:${port}`);
  process.send?.({ type, port });
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void standby.stop());
// What makes it fail ends the process, whose supervisor starts it again.
await standby.done.catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
await locks.close();
process.disconnect?.();
