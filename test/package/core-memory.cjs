const { Locks, LockTimeoutError } = require('nestjs-distributed-lock/core');
const { memoryStore } = require('nestjs-distributed-lock/memory');
const scenario = require('./core-scenario.cjs');

const store = memoryStore();
void scenario({ Locks, LockTimeoutError, store, otherStore: store });
