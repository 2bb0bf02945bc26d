import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { EMPTY, lastValueFrom, Observable } from 'rxjs';
import { DistributedLockModule, LeaderOnly, LockConfigError } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { boot } from './boot.js';

class Jobs {
  calls = 0;

  @LeaderOnly('jobs')
  async run() {
    this.calls++;
  }
  @LeaderOnly('jobs')
  watch(): Observable<unknown> {
    this.calls++;
    return EMPTY;
  }
  @LeaderOnly('jobs')
  async *rows() {
    yield this.calls++;
  }
}

describe('before the app stands for election', () => {
  it('a call is an error: in an app that is never initialized', async () => {
    const forRoot = DistributedLockModule.forRoot({ store: memoryStore(), logger: false });
    const module = await Test.createTestingModule({ imports: [forRoot], providers: [Jobs] }).compile();
    const jobs = module.get(Jobs);
    await expect(jobs.run()).rejects.toBeInstanceOf(LockConfigError);
    await expect(jobs.run()).rejects.toThrow(/@LeaderOnly\(\) on Jobs\.run: called before the app has begun to stand for election/);
    await expect(lastValueFrom(jobs.watch(), { defaultValue: EMPTY })).rejects.toBeInstanceOf(LockConfigError);
    await expect(jobs.rows().next()).rejects.toBeInstanceOf(LockConfigError);
    expect(jobs.calls).toBe(0);
  });

  it('a call is an error: in onModuleInit', async () => {
    @Injectable()
    class Early implements OnModuleInit {
      runs = 0;
      async onModuleInit() {
        await this.run();
      }
      @LeaderOnly('jobs')
      async run() {
        this.runs++;
      }
    }
    await expect(boot({ providers: [Early] })).rejects.toThrow(/called before the app has begun to stand for election/);
  });

  it('a call on what was made with new is an error, too', async () => {
    await expect(new Jobs().run()).rejects.toThrow('@LeaderOnly() on Jobs.run: this instance was not made by Nest');
  });
});
