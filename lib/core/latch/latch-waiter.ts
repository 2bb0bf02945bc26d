import type { CallSettings } from './latch-request.js';
import { Caller } from '../waiting/caller.js';

/** One caller who waits for a latch. */
export class LatchWaiter extends Caller<CallSettings> {
  /** The number of the look that is the last one for it; none is yet. */
  lastLook = Infinity;

  /** @param firstLook the number of the first look that was sent after it came: earlier ones say nothing to it. */
  constructor(
    settings: CallSettings,
    readonly firstLook: number,
    readonly resolve: () => void,
    readonly reject: (error: unknown) => void,
  ) {
    super(settings);
  }
}
