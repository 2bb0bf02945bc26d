// A Nest application gets SIGTERM while a locked function runs: the function ends, its lock is released, and the process ends.
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DistributedLockModule, Locks } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import 'reflect-metadata';

process.exitCode = 1; // until the lock is released
class AppModule {}
const store = redisStore({ url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379' });
Module({ imports: [DistributedLockModule.forRoot({ store, namespace: `shutdown-${process.pid}:` })] })(AppModule);
const app = await NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
// The docs say so. Without a list Nest asks for all signals.
if ('Deno' in globalThis) assert.throws(() => app.enableShutdownHooks(), /SIGILL/);
app.enableShutdownHooks(['SIGTERM'], { useProcessExit: true });

const locks = app.get(Locks);
let hasEnded = false;
locks.on('released', () => void (process.exitCode = hasEnded ? 0 : 2));
await locks.using('order:42', async () => {
  process.kill(process.pid, 'SIGTERM');
  await setTimeout(500);
  hasEnded = true;
});
