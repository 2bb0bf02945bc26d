import { isOfThisProcess } from '../model/owner.js';
import type { Tenure } from './tenure.js';
import { watchdog } from './watchdog.js';

/** The holder of a key. */
export interface Holder {
  readonly owner: string;
  /** The label of the caller that has it, if it is a caller of this process. */
  readonly label: string | undefined;
  /** When that caller got it, on the monotonic clock. */
  readonly since: number | undefined;
}

/**
 * The holder of the key, as far as this process knows.
 *
 * @param holder of this queue.
 * @param reported what the store said: it may be a caller of this process that has a queue of its own.
 */
export function holderOf(key: string, holder: Tenure | undefined, reported: string | null | undefined): Holder | undefined {
  const owner = holder?.owner ?? reported ?? undefined;
  if (owner === undefined) return undefined;
  const tenure = holder ?? (isOfThisProcess(owner) ? watchdog.tenureOf(key, owner) : undefined);
  return { owner, label: tenure?.turn.label, since: tenure?.turn.grantedAt };
}

/** `shop@pod-7:1:… (ReportService.nightly)` */
export function named({ owner, label }: Pick<Holder, 'owner' | 'label'>): string {
  return label === undefined ? owner : `${owner} (${label})`;
}
