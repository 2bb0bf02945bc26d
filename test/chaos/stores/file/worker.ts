import { fileStore } from '../../../../lib/stores/file/file.store.js';
import { FileTable } from '../../../../lib/stores/file/file.table.js';
import { recordStore } from '../../../../lib/stores/records/record.store.js';
import type { OpenedStore, Opening } from '../store.js';

export interface FileTarget {
  directory: string;
}

export function open({ directory }: FileTarget, { requestTimeout, breakTable }: Opening): OpenedStore {
  const store = breakTable ? recordStore(breakTable(new FileTable(directory, requestTimeout))) : fileStore({ directory, requestTimeout });
  return { store };
}
