import { Injectable } from '@nestjs/common';
import { Test, type TestingModule, type TestingModuleBuilder } from '@nestjs/testing';
import { currentLease, DistributedLock, Locks } from 'nestjs-distributed-lock';
import { DistributedLockTestingModule, LockProbe } from 'nestjs-distributed-lock/testing';
import { defer, from, lastValueFrom, toArray, type Observable } from 'rxjs';

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Takes 20 s for a sale, and has one method for each kind of result. */
@Injectable()
export class Shop {
  /** What the bodies saw: `'aborted'`, and the error of `assertHeld()`. */
  readonly seen: string[] = [];
  runs = 0;

  @DistributedLock({ value: 'promise' })
  async promise(): Promise<string> {
    await this.work();
    return 'sold';
  }

  @DistributedLock({ value: 'observable', returns: 'observable' })
  observable(): Observable<string> {
    return defer(async () => {
      await this.work();
      return 'sold';
    });
  }

  @DistributedLock({ value: 'iterable' })
  async *iterable(): AsyncGenerator<string> {
    await this.work();
    yield 'sold';
  }

  private async work(): Promise<void> {
    this.runs++;
    const lease = currentLease()!;
    lease.signal.addEventListener('abort', () => this.seen.push('aborted'));
    await sleep(20_000);
    try {
      lease.assertHeld();
    } catch (error) {
      this.seen.push((error as Error).name);
    }
  }
}

export type Returns = 'promise' | 'observable' | 'iterable';

/** The values of a call, however it returns them. */
export function valuesOf(shop: Shop, returns: Returns): Promise<string[]> {
  return lastValueFrom(from(shop[returns]()).pipe(toArray()));
}

const opened: TestingModule[] = [];
afterEach(async () => {
  for (const app of opened.splice(0)) await app.close();
});

/** A test module, closed when the test ends. */
export async function open(
  builder: TestingModuleBuilder = Test.createTestingModule({ imports: [DistributedLockTestingModule.forRoot()], providers: [Shop] }),
) {
  const app = await builder.compile();
  opened.push(app);
  const locks = app.get(LockProbe);
  return { app, locks, own: app.get(Locks) };
}
