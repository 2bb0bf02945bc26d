// A decorated call next to a bare one, on the memory store: what the lock costs besides the store.
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DistributedLock, DistributedLockModule } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { begin } from './measure/begin.mjs';
import { median } from './measure/statistics.mjs';
import { ROUNDS, rounds } from './measure/rounds.mjs';

const CALLS = 20_000;

await begin('decorator [options]');

/** Mean microseconds of a call: one is too short for the clock. */
async function timeMean(work) {
  const start = performance.now();
  for (let i = 0; i < CALLS; i++) await work();
  return ((performance.now() - start) * 1000) / CALLS;
}

function decorate(type, method, options) {
  const descriptor = Object.getOwnPropertyDescriptor(type.prototype, method);
  DistributedLock({ keyTimeout: 10_000, ...options })(type.prototype, method, descriptor);
  Object.defineProperty(type.prototype, method, descriptor);
}

class Service {
  async bare() {}
  async locked() {}
  async keyed() {}
}
decorate(Service, 'locked', { value: 'bench' });
decorate(Service, 'keyed', { value: 'keyed', paramLock: true });
Injectable()(Service);
class App {}
Module({ imports: [DistributedLockModule.forRoot({ store: memoryStore() })], providers: [Service] })(App);

const app = await NestFactory.createApplicationContext(App, { logger: false });
const service = app.get(Service);
const { bare, locked, keyed } = await rounds(
  { bare: () => service.bare('apple', 1), locked: () => service.locked('apple', 1), keyed: () => service.keyed('apple', 1) },
  timeMean,
);
await app.close();

console.log(`decorated over bare call on the memory store, ${ROUNDS} rounds of ${CALLS}, median of rounds`);
console.log(`  bare      ${median(bare).toFixed(2)} µs`);
for (const [name, times, goal] of [
  ['one key', locked, '; goal: at most 6'],
  ['paramLock', keyed, ''],
]) {
  const over = times.map((time, round) => time - bare[round]);
  const ratio = median(times.map((time, round) => time / bare[round]));
  const all = over.map((time) => time.toFixed(1)).join(' ');
  console.log(
    `  ${name.padEnd(9)} ${median(times).toFixed(2)} µs: ${median(over).toFixed(2)} µs over (rounds: ${all})${goal}; ratio ${ratio.toFixed(0)}`,
  );
}
