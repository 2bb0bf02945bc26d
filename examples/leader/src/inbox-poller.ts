import { Injectable, Logger } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { currentLease, LeaderOnly } from 'nestjs-distributed-lock';

@Injectable()
export class InboxPoller {
  private readonly logger = new Logger(InboxPoller.name);

  // The leader polls, the other instances skip. When it dies, another one leads within keyTimeout and a second; when it is stopped, at once.
  // A poll that takes longer than the interval overlaps with the next one. If it must not: `@DistributedLock({ waitTimeout: 0, onTimeout: 'skip' })` below.
  @Interval(500)
  @LeaderOnly('inbox', { keyTimeout: 3_000 })
  async poll(): Promise<void> {
    this.logger.log(`Polled in term ${currentLease()?.fencingToken}.`);
  }
}
