const { Locks, LockTimeoutError } = require('nestjs-distributed-lock/core');
const { mysqlStore } = require('nestjs-distributed-lock/mysql');
const scenario = require('./core-scenario.cjs');

const open = () => mysqlStore({ url: process.env.TEST_MYSQL, schema: 'create' });
void scenario({ Locks, LockTimeoutError, store: open(), otherStore: open() });
