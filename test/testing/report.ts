import { Injectable } from '@nestjs/common';
import { currentLease, DistributedLock } from 'nestjs-distributed-lock';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Calls that take minutes and hours. */
@Injectable()
export class ReportService {
  readonly runs: number[] = [];

  @DistributedLock({ value: 'report' })
  async write(): Promise<string> {
    await sleep(HOUR);
    currentLease()!.assertHeld();
    return 'written';
  }

  @DistributedLock({ value: 'endless', retryCount: 0 })
  async endless(): Promise<string> {
    return 'never';
  }

  @DistributedLock({ value: 'limited', maxHold: 5 * MINUTE })
  async limited(): Promise<number> {
    const { signal } = currentLease()!;
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    return performance.now();
  }

  @DistributedLock({ value: 'steps' })
  async steps(): Promise<void> {
    for (let step = 0; step < 100; step++) {
      await sleep(10);
      this.runs.push(performance.now());
    }
  }
}
