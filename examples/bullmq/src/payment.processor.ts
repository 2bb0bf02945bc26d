import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnModuleDestroy } from '@nestjs/common';
import type { Job } from 'bullmq';
import { Redis } from 'ioredis';
import { DistributedLock } from 'nestjs-distributed-lock';
import { setTimeout as pause } from 'node:timers/promises';

export interface Payment {
  account: string;
  amount: number;
}

@Processor('payments', { concurrency: 10 })
export class PaymentProcessor extends WorkerHost implements OnModuleDestroy {
  private readonly redis = new Redis(process.env.REDIS_URL ?? 'redis://localhost:6379');

  // Jobs of one account run one after the other, on whichever worker. Jobs of other accounts run beside them.
  @DistributedLock<PaymentProcessor['process']>({ value: 'account', key: (job) => job.data.account, waitTimeout: 60_000 })
  async process({ data: { account, amount } }: Job<Payment>): Promise<number> {
    const balance = Number(await this.redis.get(`balance:${account}`));
    await pause(20); // the bank
    await this.redis.set(`balance:${account}`, balance + amount);
    return balance + amount;
  }

  // The first step of a shutdown. Jobs that run, or wait for their account, end while the locks and Redis are still there.
  // That may take as long as `waitTimeout` and the jobs: keep both below the time before the SIGKILL of your platform.
  async onModuleDestroy(): Promise<void> {
    await this.worker.close();
    await this.redis.quit();
  }
}
