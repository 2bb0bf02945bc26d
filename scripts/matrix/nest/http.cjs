require('reflect-metadata');
const common = require('@nestjs/common');
const core = require('@nestjs/core');
const lock = require('nestjs-distributed-lock');
const { memoryStore } = require('nestjs-distributed-lock/memory');
const { redisStore } = require('nestjs-distributed-lock/redis');
const scenario = require('./http-scenario.cjs');

void scenario({ common, core, lock, memoryStore, redisStore });
