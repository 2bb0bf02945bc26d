import { OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq';
import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import { DelayedError, type Job, type JobsOptions } from 'bullmq';
import { currentLease, DistributedLock, LockAbortedError, LockTimeoutError } from 'nestjs-distributed-lock';
import { Gate } from '../support/gate.js';

export interface Sale {
  sku: string;
  units: number;
}

/** What the processors below sell, and the lock that each sale was under. */
@Injectable()
export class Sales {
  readonly gate = new Gate();
  readonly sold: string[] = [];
  readonly failures: string[] = [];

  report(sku: string, error: Error): void {
    this.failures.push(`${sku}: ${error.message}`);
  }

  async sell({ sku, units }: Sale): Promise<number> {
    await this.gate.pass();
    this.sold.push(`${units} ${sku} under ${currentLease()?.key ?? 'no lock'}`);
    return units;
  }
}

// #region bullmq-process
@Processor('sales', { concurrency: 10 })
export class SalesProcessor extends WorkerHost {
  constructor(@Inject(Sales) private readonly sales: Sales) {
    super();
  }

  @DistributedLock<SalesProcessor['process']>({ value: 'sale', key: (job) => job.data.sku, keyTimeout: 10_000, waitTimeout: 60_000 })
  async process(job: Job<Sale>): Promise<number> {
    return this.sales.sell(job.data);
  }

  @OnWorkerEvent('failed')
  @DistributedLock({ value: 'sales-report', keyTimeout: 10_000, waitTimeout: 60_000, onTimeout: 'skip' })
  async onFailed(job: Job<Sale>, error: Error): Promise<void> {
    this.sales.report(job.data.sku, error);
  }
}
// #endregion

// #region bullmq-retries
/** A try that found the key taken counts as an attempt, with its backoff. */
export const retries: JobsOptions = { attempts: 5, backoff: { type: 'exponential', delay: 50, jitter: 0.5 } };
// #endregion

// #region bullmq-delay
@Processor('sales', { concurrency: 10 })
export class DelayingProcessor extends WorkerHost implements OnModuleDestroy {
  constructor(@Inject(Sales) private readonly sales: Sales) {
    super();
  }

  async process(job: Job<Sale>, token?: string): Promise<number> {
    try {
      return await this.sell(job.data);
    } catch (error) {
      if (!(error instanceof LockTimeoutError || error instanceof LockAbortedError)) throw error;
      await job.moveToDelayed(Date.now() + 1_000, token); // it has not started, so this uses no attempt
      throw new DelayedError();
    }
  }

  @DistributedLock<DelayingProcessor['sell']>({ value: 'sale', key: ({ sku }) => sku, keyTimeout: 10_000, waitTimeout: 0 })
  async sell(sale: Sale): Promise<number> {
    return this.sales.sell(sale);
  }

  /** First step of a shutdown: take no more jobs. Running jobs continue. */
  async onModuleDestroy(): Promise<void> {
    await this.worker.pause(true);
  }
}
// #endregion
