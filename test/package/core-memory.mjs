import { Locks, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import scenario from './core-scenario.cjs';

const store = memoryStore();
await scenario({ Locks, LockTimeoutError, store, otherStore: store });
