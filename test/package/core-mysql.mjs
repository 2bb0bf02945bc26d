import { Locks, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import scenario from './core-scenario.cjs';

const open = () => mysqlStore({ url: process.env.TEST_MYSQL, schema: 'create' });
await scenario({ Locks, LockTimeoutError, store: open(), otherStore: open() });
