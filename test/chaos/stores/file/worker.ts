import { fileStore } from '../../../../lib/stores/file/file.store.js';
import { FileTable } from '../../../../lib/stores/file/file.table.js';
import { recordStore, type RecordTable } from '../../../../lib/stores/records/record.store.js';
import type { Random } from '../../random.js';
import type { OpenedStore } from '../store.js';

export interface FileTarget {
  directory: string;
}

export function open(target: unknown, random: Random, breakTable?: (table: RecordTable) => RecordTable): OpenedStore {
  const { directory } = target as FileTarget;
  const requestTimeout = random.pick([300, 600, 1_000]);
  const store = breakTable ? recordStore(breakTable(new FileTable(directory, requestTimeout))) : fileStore({ directory, requestTimeout });
  return { store };
}
