// #region count-down-latch
import { type CountDownLatch, LockLostError, type Locks, LockTimeoutError } from 'nestjs-distributed-lock/core';

/** The parts of a nightly import are loaded by whichever instance takes them; when all are in, one report is made. */
export class NightlyImport {
  constructor(
    private readonly locks: Locks,
    private readonly load: (part: string) => Promise<void>,
  ) {}

  /** Before the parts are given out. `false`: another instance has begun this night already. */
  async begin(night: string, parts: string[]): Promise<boolean> {
    return this.latch(night).trySetCount(parts.length);
  }

  /** For each part, on any instance. The count is repeated for up to a minute where Redis does not answer, and made once. */
  async importPart(night: string, part: string): Promise<void> {
    await this.load(part);
    await this.latch(night).countDown({ waitTimeout: 60_000 });
  }

  /** Where the report is made. It waits for two hours at most, or until the signal aborts. */
  async report(night: string, signal?: AbortSignal): Promise<string> {
    try {
      await this.latch(night).await({ waitTimeout: 2 * 3_600_000, signal });
      return 'complete';
    } catch (error) {
      if (error instanceof LockTimeoutError) return `late: ${await this.latch(night).getCount()} parts are missing`;
      if (error instanceof LockLostError) return 'given up: nothing came in for an hour';
      throw error;
    }
  }

  /** A key for each night. The latch is forgotten an hour after the last part. */
  private latch(night: string): CountDownLatch {
    return this.locks.countDownLatch(`import:${night}`, { timeToLive: 3_600_000 });
  }
}
// #endregion
