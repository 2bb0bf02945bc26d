import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Locks, runStandby, type Term } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { settings } from '../settings.js';
import { Bookkeeper } from './bookkeeper.js';
import { LeaderModule } from './leader.module.js';
import { Ledger } from './ledger.js';

// The election's own: they outlive each container of the app.
const locks = new Locks(redisStore({ url: process.env.STORE_URL! }));

const standby = runStandby({
  locks,
  name: 'bookkeeping',
  keyTimeout: settings.keyTimeout,
  create: () => NestFactory.create(LeaderModule, { abortOnError: false, return503OnClosing: true }),
  async prepare(app) {
    await app.get(Ledger).open();
    console.log(`${process.pid} is standing by`);
  },
  start,
});

async function start(app: INestApplication, term: Term): Promise<void> {
  app.get(Bookkeeper).term = term;
  await app.listen(process.env.PORT ?? 3000, '127.0.0.1');
  console.log(`${process.pid} is leading at ${await app.getUrl()}`);
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void standby.stop());
// What makes it fail ends the process, whose supervisor starts it again.
await standby.done.catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
await locks.close();
