// An ESM application with a CommonJS feature library: both copies of ours in one process, on one store.
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import * as esm from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import scenario from './nest-scenario.cjs';

const cjs = createRequire(import.meta.url)('nestjs-distributed-lock');
assert.notEqual(cjs.DistributedLock, esm.DistributedLock);
assert.ok(new cjs.LockTimeoutError('from the other copy') instanceof esm.LockTimeoutError);
for (const { DistributedLockModule } of [esm, cjs]) {
  await scenario({ Injectable, Module, NestFactory, DistributedLockModule, memoryStore, copies: [esm, cjs] });
}
