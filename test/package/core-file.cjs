const { Locks, LockTimeoutError } = require('nestjs-distributed-lock/core');
const { fileStore } = require('nestjs-distributed-lock/file');
const { mkdtempSync } = require('node:fs');
const { join } = require('node:path');
const scenario = require('./core-scenario.cjs');

const directory = mkdtempSync(join(__dirname, 'locks-'));
void scenario({ Locks, LockTimeoutError, store: fileStore({ directory }), otherStore: fileStore({ directory }) });
