import { type BeforeApplicationShutdown, Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { Term } from 'nestjs-distributed-lock';
import { setTimeout as pause } from 'node:timers/promises';
import { settings } from '../settings.js';
import { Ledger } from './ledger.js';

/** A job that never ends and that nobody may do twice, such as a consumer or a cron: it begins with the app, and ends with it. */
@Injectable()
export class Bookkeeper implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('Bookkeeper');
  /** Set before the app starts, for as long as it runs. */
  term!: Term;
  private isClosing = false;
  private work: Promise<void> | undefined;

  constructor(private readonly ledger: Ledger) {}

  onApplicationBootstrap(): void {
    this.work = this.keepBooks();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.isClosing = true;
    await this.work;
  }

  private async keepBooks(): Promise<void> {
    while (!this.isClosing) await this.keepBook();
  }

  // Nothing is asked of the lock between the work and the write: the process may be stopped there for as long as you like, and so may
  // whatever would ask. It is the ledger that refuses what comes too late.
  private async keepBook(): Promise<void> {
    try {
      await pause(settings.jobMs);
      const isAccepted = await this.ledger.append(this.term.fencingToken!);
      if (!isAccepted) this.logger.warn(`The ledger has refused token ${this.term.fencingToken}: a newer leader writes already.`);
    } catch (error) {
      this.logger.error(error);
    }
  }
}
