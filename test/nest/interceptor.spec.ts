import { Injectable, type CallHandler, type ExecutionContext, type NestInterceptor } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { EMPTY, from, lastValueFrom, map, Observable, of, throwError, toArray } from 'rxjs';
import { currentLease, DistributedLock, DistributedLockInterceptor, DistributedLockModule } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { boot, start } from './boot.js';

@Injectable()
class Stock {
  @(Reflector.createDecorator<string>({ key: 'colour' })('red'))
  @DistributedLock({ paramLock: true })
  async reduce(sku: string, _units: number) {
    return `${sku} ${currentLease() ? 'locked' : 'unlocked'}`;
  }
  @DistributedLock()
  watch(): Observable<unknown> {
    return of(1, 2);
  }
  @DistributedLock()
  async *list() {
    yield 1;
    yield 2;
  }
}

/** An app whose aspect a test has put another in the place of. */
async function bootWith(intercept: NestInterceptor['intercept']) {
  const forRoot = DistributedLockModule.forRoot({ store: memoryStore(), logger: false });
  const builder = Test.createTestingModule({ imports: [forRoot], providers: [Stock, { provide: 'made', useFactory: () => new Stock() }] });
  const app = await start(builder.overrideProvider(DistributedLockInterceptor).useValue({ intercept }));
  return { stock: app.get(Stock), made: app.get<Stock>('made') };
}
const read = (rows: AsyncIterable<unknown>) => lastValueFrom(from(rows).pipe(toArray()));

describe('DistributedLockInterceptor', () => {
  it('is called by the join point with the context of the method', async () => {
    const contexts: ExecutionContext[] = [];
    const { stock } = await bootWith((context, next) => {
      contexts.push(context);
      return next.handle();
    });
    await stock.reduce('apple', 2);
    const [context] = contexts;
    expect(contexts).toHaveLength(1);
    expect(context?.getType<string>()).toBe('method');
    expect(context?.getClass()).toBe(Stock);
    expect(context?.getHandler()).toBe(Stock.prototype.reduce);
    expect(context?.getArgs()).toEqual(['apple', 2]);
    expect(context?.getArgByIndex(1)).toBe(2);
    expect(new Reflector().get<string>('colour', context!.getHandler())).toBe('red');
  });

  it('is one and the same aspect for promises, Observables and iterables, of injected and of adopted instances', async () => {
    const types: string[] = [];
    const { stock, made } = await bootWith((context, next) => {
      types.push(`${context.getHandler().name} ${context.getType<string>()}`);
      return next.handle();
    });
    await stock.reduce('apple', 1);
    await made.reduce('apple', 1);
    await lastValueFrom(stock.watch());
    await read(stock.list());
    expect(types).toEqual(['reduce method', 'reduce method', 'watch method', 'list method']);
  });

  it('may be overridden in a test by one that lets calls pass unlocked', async () => {
    const { stock } = await bootWith((_context, next) => next.handle());
    expect(await stock.reduce('apple', 2)).toBe('apple unlocked');
    expect(await lastValueFrom(stock.watch())).toBe(2);
    expect(await read(stock.list())).toEqual([1, 2]);
  });

  it('may be overridden by one that answers itself, late or never', async () => {
    const { stock } = await bootWith(() => of('instead'));
    expect(await stock.reduce('apple', 2)).toBe('instead');
    const late = await bootWith(async (_context, next) => next.handle().pipe(map((value) => `late ${String(value)}`)));
    expect(await late.stock.reduce('apple', 2)).toBe('late apple unlocked');
    const silent = await bootWith(() => EMPTY);
    expect(await silent.stock.reduce('apple', 2)).toBeUndefined();
    const refusing = await bootWith(() => throwError(() => new Error('closed')));
    await expect(refusing.stock.reduce('apple', 2)).rejects.toThrow('closed');
  });

  it('lets calls of other types pass', async () => {
    const { app, acquired } = await boot({});
    const interceptor = app.get(DistributedLockInterceptor);
    const next: CallHandler = { handle: () => of('passed') };
    for (const type of ['http', 'rpc', 'ws', 'graphql']) {
      const context = { getType: () => type } as unknown as ExecutionContext;
      expect(await lastValueFrom(interceptor.intercept(context, next))).toBe('passed');
    }
    expect(acquired).toEqual([]);
  });
});
