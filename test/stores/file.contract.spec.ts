import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileStore } from 'nestjs-distributed-lock/file';
import { engineContract, storeContract } from '../contract/contracts.js';
import { FileKeys } from './file/setting.js';

const directory = mkdtempSync(join(tmpdir(), 'locks-'));
const keys = new FileKeys(directory);
afterAll(() => rmSync(directory, { recursive: true }));
const open = () => fileStore({ directory });

storeContract('files', open);
engineContract(
  'files',
  open,
  () => keys.inUse(),
  (key) => keys.waitersOf(key),
);
