import type { AcquireReply, LockStore } from '../../../lib/core.js';
import type { RecordTable } from '../../../lib/stores/records/record.table.js';
import type { Kind } from '../history/entry.js';
import type { OracleName } from '../oracles/oracle.js';

/** A defect that a store could have, to prove that an oracle sees it. */
export interface Break {
  readonly expects: OracleName;
  readonly kinds: readonly Kind[];
  /** ms of load, where the usual time is too short for it to show */
  readonly length?: number;
  /** the stores on which it is tried; default: only Redis */
  readonly stores?: readonly string[];
  readonly wrap?: (store: LockStore) => LockStore;
  /** of stores of records */
  readonly wrapTable?: (table: RecordTable) => RecordTable;
}

let lastToken = Date.now() * 1_000;

export function granted(reply: AcquireReply): AcquireReply {
  return reply.granted ? reply : { granted: true, token: ++lastToken };
}

/** The same, but for some members. */
export function changed<T extends object>(original: T, changes: Partial<T>): T {
  return new Proxy(original, {
    get(target, name) {
      if (name in changes) return changes[name as keyof T];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
