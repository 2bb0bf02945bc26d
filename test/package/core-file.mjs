import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { Locks, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';
import scenario from './core-scenario.cjs';

const directory = mkdtempSync(join(import.meta.dirname, 'locks-'));
await scenario({ Locks, LockTimeoutError, store: fileStore({ directory }), otherStore: fileStore({ directory }) });
