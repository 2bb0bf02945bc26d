import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Locks } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { migrate } from './migrate.js';

// Before the app is created, so these are not the locks of its module. `npm run migrate` takes the same key.
const locks = new Locks(redisStore({ url: process.env.REDIS_URL ?? 'redis://localhost:6379' }));
// One instance migrates, the others wait, and then find nothing to do. The lease is renewed for as long as the migration takes.
await locks.using('db-migrate', migrate, { waitTimeout: 600_000 });
await locks.close();

@Module({})
class AppModule {}

await NestFactory.createApplicationContext(AppModule);
console.log('The app is open');
