import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DistributedLock, DistributedLockModule } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';

let sellers = 0;
let most = 0;

@Injectable()
class Shop {
  @DistributedLock()
  async sell(): Promise<void> {
    most = Math.max(most, ++sellers);
    await new Promise(setImmediate);
    sellers--;
  }
}

@Module({ imports: [DistributedLockModule.forRoot({ store: memoryStore() })], providers: [Shop] })
class AppModule {}

async function main(): Promise<void> {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  await Promise.all([1, 2, 3].map(() => app.get(Shop).sell()));
  await app.close();
  console.log(most === 1 ? 'sold once at a time' : `${most} at a time`);
}
void main();
