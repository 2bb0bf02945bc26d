// One start, timed from inside: with 'locked' its thousand methods are decorated, with 'module' only the module is there, with 'bare' nothing.
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DistributedLock, DistributedLockModule } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';

const PROVIDERS = 100;
const METHODS = 10;
const variant = process.argv[2];

function makeProvider(index) {
  const type = { [`Service${index}`]: class {} }[`Service${index}`];
  for (let m = 0; m < METHODS; m++) {
    // prettier-ignore
    const method = { async [`method${m}`](id) { return id; } }[`method${m}`];
    const descriptor = { value: method, writable: true, configurable: true, enumerable: false };
    Reflect.defineMetadata('design:returntype', Promise, type.prototype, method.name);
    if (variant === 'locked')
      DistributedLock({ prefix: 'bench-', paramLock: ['0'], keyTimeout: 10_000 })(type.prototype, method.name, descriptor);
    Object.defineProperty(type.prototype, method.name, descriptor);
  }
  Injectable()(type);
  return type;
}

/** Milliseconds: of the clock, and of the processor, which other programs do not lengthen. */
function now() {
  const { user, system } = process.cpuUsage();
  return { wall: performance.now(), cpu: (user + system) / 1000 };
}

const begun = now();
const providers = Array.from({ length: PROVIDERS }, (_, index) => makeProvider(index));
class App {}
Module({ imports: variant === 'bare' ? [] : [DistributedLockModule.forRoot({ store: memoryStore() })], providers })(App);
const defined = now();
const app = await NestFactory.createApplicationContext(App, { logger: false });
const up = now();
await app.close();
const between = (from, to) => ({ wall: to.wall - from.wall, cpu: to.cpu - from.cpu });
console.log(JSON.stringify({ define: between(begun, defined), boot: between(defined, up), total: between(begun, up) }));
