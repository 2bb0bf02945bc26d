// #region count-down-latch
import { type CountDownLatch, LockLostError, type Locks, LockTimeoutError } from 'nestjs-distributed-lock/core';

/** Any instance can load the parts of a nightly import. When all are loaded, one report is made. */
export class NightlyImport {
  constructor(
    private readonly locks: Locks,
    private readonly load: (part: string) => Promise<void>,
  ) {}

  /** Called before the parts are distributed. `false`: another instance has begun, and parts are missing. Once all are loaded, it begins again. */
  async begin(night: string, parts: string[]): Promise<boolean> {
    return this.latch(night).trySetCount(parts.length);
  }

  /** For each part, on any instance. If Redis does not answer, the request is repeated for up to a minute; it counts once. */
  async importPart(night: string, part: string): Promise<void> {
    await this.load(part);
    await this.latch(night).countDown({ waitTimeout: 60_000 });
  }

  /** Waits for at most two hours, or until the signal aborts. */
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

  /** One key per night. The latch expires an hour after the last part. */
  private latch(night: string): CountDownLatch {
    return this.locks.countDownLatch(`import:${night}`, { timeToLive: 3_600_000 });
  }
}
// #endregion
