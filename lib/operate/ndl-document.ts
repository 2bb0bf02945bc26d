import type { DoctorReport } from '../core/model/doctor-report.js';
import type { ForceReply, KeyEvent, KeyHolder, KeyReport, KeyWaiter } from '../core/model/key-report.js';
import type { Deadlock } from './wait-graph.js';

/** A report with its ages in milliseconds; `null`: unknown. */
export interface KeyDocument extends Omit<KeyReport, 'holders' | 'waiters'> {
  readonly holders: readonly (KeyHolder & { readonly heldFor: number | null })[];
  readonly waiters: readonly (KeyWaiter & { readonly waitingFor: number | null })[];
}

/** A caller that waits, and what it waits for. */
export interface Edge {
  readonly from: string;
  readonly key: string;
  readonly to: string;
}

/** The output of each command with `--json`, before it becomes JSON. */
export interface Documents {
  readonly ls: { readonly at: Date; readonly total: number; readonly keys: readonly KeyDocument[] };
  readonly show: { readonly at: Date; readonly key: KeyDocument; readonly deadlocks: readonly Deadlock[] };
  readonly watch: KeyEvent;
  readonly graph: { readonly at: Date; readonly deadlocks: readonly Deadlock[]; readonly edges: readonly Edge[] };
  readonly ui: { readonly url: string };
  readonly release: ForceReply & { readonly at: Date; readonly before: KeyDocument; readonly after: KeyDocument };
  readonly hold: { readonly key: string; readonly owner: string; readonly until: Date };
  readonly doctor: DoctorReport;
}

/** JSON has no dates, and no `Infinity`: there `null` stands for the whole key. */
type AsJson<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? AsJson<Item>[]
    : T extends object
      ? { [Name in keyof T]: Name extends 'permits' ? AsJson<T[Name]> | null : AsJson<T[Name]> }
      : T;

/** The output of `ndl <command> --json`. Dates are ISO texts, times are milliseconds, `v` is the version of this format. */
export type NdlDocument<Command extends keyof Documents> = AsJson<Documents[Command]> & { v: 1 };

/** The output on stderr when it fails. */
export interface NdlError {
  readonly error: { readonly code: string; readonly message: string };
}
