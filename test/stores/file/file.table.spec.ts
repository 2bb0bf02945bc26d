import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileTable } from '../../../lib/stores/file/file.table.js';
import { recordTableContract } from '../../contract/record-table.contract.js';

const directory = mkdtempSync(join(tmpdir(), 'locks-'));
afterAll(() => rmSync(directory, { recursive: true }));
const open = () => new FileTable(directory, 1000);

recordTableContract('files', open, { sweep: () => open().sweep(0) });
