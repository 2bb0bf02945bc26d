import { Locks, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import scenario from './core-scenario.cjs';

const options = JSON.parse(process.env.TEST_REDIS);
await scenario({ Locks, LockTimeoutError, store: redisStore({ options }), otherStore: redisStore({ options }) });
