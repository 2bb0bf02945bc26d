import { Redis } from 'ioredis';
import { Locks, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import scenario from './clients-scenario.cjs';

await scenario({ Locks, LockTimeoutError, redisStore, Redis });
