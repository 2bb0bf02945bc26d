import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileStore } from 'nestjs-distributed-lock/file';
import { wholeStoreContract } from '../contract/store.contracts.js';

const directory = mkdtempSync(join(tmpdir(), 'locks-'));
afterAll(() => rmSync(directory, { recursive: true }));

// A thousand calls at once take a second of a busy disk.
wholeStoreContract('files', () => fileStore({ directory, requestTimeout: 5_000 }));
