import { Injectable } from '@nestjs/common';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import { currentLease, DistributedLock } from 'nestjs-distributed-lock';
import { DistributedLockTestingModule, fakeTimers, LockProbe, passTime } from 'nestjs-distributed-lock/testing';
import { Observable } from 'rxjs';

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Takes a second for a sale, and has one method for each kind of result. */
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
    return new Observable((subscriber) => {
      this.work().then(
        () => {
          subscriber.next('sold');
          subscriber.complete();
        },
        (error: unknown) => subscriber.error(error),
      );
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
export async function valuesOf(shop: Shop, returns: Returns): Promise<string[]> {
  if (returns === 'promise') return [await shop.promise()];
  const values: string[] = [];
  if (returns === 'iterable') for await (const value of shop.iterable()) values.push(value);
  else
    await new Promise<void>(
      (complete, error) => void shop.observable().subscribe({ next: (value) => values.push(value), complete, error }),
    );
  return values;
}

export interface Outcome {
  values?: string[];
  error?: Error;
}

/** Follows a call without a rejection that nobody handles. */
export async function outcomeOf(call: Promise<string[]>): Promise<Outcome> {
  return call.then(
    (values) => ({ values }),
    (error: Error) => ({ error }),
  );
}

/** A test module under fake timers, closed by {@link closeAll}. */
export async function open(
  builder: TestingModuleBuilder = Test.createTestingModule({ imports: [DistributedLockTestingModule.forRoot()], providers: [Shop] }),
) {
  jest.useFakeTimers(fakeTimers.jest);
  const app = await builder.compile();
  const closing = { close: () => app.close() };
  opened.push(closing);
  return { app, locks: app.get(LockProbe) };
}

const opened: { close(): Promise<void> }[] = [];
export async function closeAll(): Promise<void> {
  for (const each of opened.splice(0)) {
    const closed = each.close();
    await passTime(20_000);
    await closed;
  }
  jest.useRealTimers();
}
