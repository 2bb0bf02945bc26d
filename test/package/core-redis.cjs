const { Locks, LockTimeoutError } = require('nestjs-distributed-lock/core');
const { redisStore } = require('nestjs-distributed-lock/redis');
const scenario = require('./core-scenario.cjs');

const options = JSON.parse(process.env.TEST_REDIS);
void scenario({ Locks, LockTimeoutError, store: redisStore({ options }), otherStore: redisStore({ options }) });
