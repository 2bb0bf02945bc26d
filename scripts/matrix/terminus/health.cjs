require('reflect-metadata');
const common = require('@nestjs/common');
const core = require('@nestjs/core');
const fastify = require('@nestjs/platform-fastify');
const terminus = require('@nestjs/terminus');
const lock = require('nestjs-distributed-lock');
const { redisStore } = require('nestjs-distributed-lock/redis');
const { LockHealthIndicator } = require('nestjs-distributed-lock/terminus');
const scenario = require('./health-scenario.cjs');

void scenario({ common, core, fastify, terminus, lock, redisStore, LockHealthIndicator });
