import { checkOptions, integerFrom, ofType } from '../../core/model/check-options.js';
import type { LockStore } from '../../core/store/lock-store.js';
import { recordStore } from '../records/record.store.js';
import { FileTable } from './file.table.js';

/** Options of {@link fileStore}. */
export interface FileStoreOptions {
  /** Where the locks are, on a local file system: an absolute path, the same for all that share locks. It is made if it is missing. */
  directory: string;
  /** Milliseconds that a single request may take. Default 1000. */
  requestTimeout?: number;
}

const CHECKS = { directory: ofType('string'), requestTimeout: integerFrom(1, 2 ** 31 - 1) };

/**
 * Locks in the files of a directory, for the processes of one host. It needs no server.
 *
 * @throws {LockConfigError} when an option is wrong.
 */
export function fileStore(options: FileStoreOptions): LockStore {
  checkOptions(options, 'fileStore', CHECKS, 'directory');
  const { directory, requestTimeout = 1000 } = options;
  return recordStore(new FileTable(directory, requestTimeout));
}
