const { Locks, LockTimeoutError } = require('nestjs-distributed-lock/core');
const { postgresStore } = require('nestjs-distributed-lock/postgres');
const scenario = require('./core-scenario.cjs');

const open = () => postgresStore({ url: process.env.TEST_POSTGRES, schema: 'create' });
void scenario({ Locks, LockTimeoutError, store: open(), otherStore: open() });
