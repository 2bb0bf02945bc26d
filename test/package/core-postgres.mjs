import { Locks, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import scenario from './core-scenario.cjs';

const open = () => postgresStore({ url: process.env.TEST_POSTGRES, schema: 'create' });
await scenario({ Locks, LockTimeoutError, store: open(), otherStore: open() });
