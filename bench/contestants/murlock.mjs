// In a Nest app of its own, which is the only way it comes, by its service.
import 'reflect-metadata';
import { createRequire } from 'node:module';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { MurLockModule, MurLockService } from 'murlock';
import { versionOf } from './client.mjs';
import { countRequests } from './requests.mjs';

const require = createRequire(import.meta.url);
countRequests(require('@redis/client/dist/lib/client/commands-queue.js').default, 'addCommand');

export async function open({ port, retryDelay }) {
  class App {}
  const redisOptions = { url: `redis://127.0.0.1:${port}` };
  Module({ imports: [MurLockModule.forRoot({ redisOptions, wait: retryDelay, maxAttempts: 1, blocking: true, logLevel: 'error' })] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  const service = app.get(MurLockService);
  return {
    version: versionOf('murlock'),
    keyOf: (key) => key,
    locked: (key, ttl, work) => service.runWithLock(key, ttl, work),
    close: () => app.close(),
  };
}
