const { Redis } = require('ioredis');
const { Locks, LockTimeoutError } = require('nestjs-distributed-lock/core');
const { redisStore } = require('nestjs-distributed-lock/redis');
const scenario = require('./clients-scenario.cjs');

void scenario({ Locks, LockTimeoutError, redisStore, Redis });
