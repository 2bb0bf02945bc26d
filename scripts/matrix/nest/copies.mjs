// An ESM application with a CommonJS feature library, and the reverse; then libraries that brought an installation of their own along.
import 'reflect-metadata';
import * as common from '@nestjs/common';
import * as core from '@nestjs/core';
import * as lock from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { createRequire } from 'node:module';
import scenario from './copies-scenario.cjs';
import * as secondEsm from './second/copy.mjs';

const require = createRequire(import.meta.url);
const esm = { lock, memoryStore, redisStore };
const cjs = {
  lock: require('nestjs-distributed-lock'),
  ...require('nestjs-distributed-lock/memory'),
  ...require('nestjs-distributed-lock/redis'),
};
const secondCjs = require('./second/copy.cjs');

for (const [app, feature] of [
  [esm, cjs],
  [cjs, esm],
  [esm, secondCjs],
  [esm, secondEsm],
  [cjs, secondCjs],
]) {
  await scenario({ common, core, app, feature });
}
