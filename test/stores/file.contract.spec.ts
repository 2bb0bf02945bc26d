import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileStore } from 'nestjs-distributed-lock/file';
import { engineContract, storeContract } from '../contract/contracts.js';
import { FileKeys } from './file/setting.js';

const directory = mkdtempSync(join(tmpdir(), 'locks-'));
const keys = new FileKeys(directory);
afterAll(() => rmSync(directory, { recursive: true }));
// A thousand calls at once take a second of a busy disk.
const open = () => fileStore({ directory, requestTimeout: 5_000 });

storeContract('files', open);
engineContract(
  'files',
  open,
  () => keys.inUse(),
  (key) => keys.waitersOf(key),
);
