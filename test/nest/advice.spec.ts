import { Controller, Get, Injectable } from '@nestjs/common';
import { currentLease, DistributedLock, type LockLogger } from 'nestjs-distributed-lock';
import { Transactional as ClsTransactional } from '@nestjs-cls/transactional';
import { Transactional } from 'typeorm-transactional';
import { boot } from './boot.js';

class Log implements LockLogger {
  readonly warnings: string[] = [];
  readonly details: string[] = [];
  warn = (message: string) => void this.warnings.push(message);
  debug = (message: string) => void this.details.push(message);
  error = (message: string) => void this.warnings.push(message);
}

async function adviceFor(...providers: (new () => unknown)[]) {
  const logger = new Log();
  await boot({ providers }, { logger });
  return logger;
}

/** As a tracer would: it keeps what it finds on the method, or not. */
function Traced(keep: boolean): MethodDecorator {
  return (_target, _method, descriptor: PropertyDescriptor) => {
    const inner = descriptor.value as (...args: unknown[]) => unknown;
    const span = function (this: unknown, ...args: unknown[]): unknown {
      return inner.apply(this, args);
    };
    if (keep) for (const key of Reflect.getMetadataKeys(inner)) Reflect.defineMetadata(key, Reflect.getMetadata(key, inner), span);
    descriptor.value = span;
  };
}

class Base {
  @DistributedLock()
  async buy(): Promise<void> {}
}

describe('an override of a locked method', () => {
  it('without a lock of its own is warned about, by class and method', async () => {
    class Shop extends Base {
      override async buy() {}
    }
    const { warnings } = await adviceFor(Shop);
    expect(warnings).toEqual([expect.stringMatching(/^Shop\.buy overrides Base\.buy without its @DistributedLock\(\): it runs unlocked/)]);
  });

  it('is found below a class in between, and told once for however many classes', async () => {
    class Between extends Base {
      override async buy() {}
    }
    class First extends Between {}
    class Second extends Between {}
    const { warnings } = await adviceFor(First, Second);
    expect(warnings).toEqual([expect.stringContaining('Between.buy overrides Base.buy')]);
  });

  it('is fine with a lock of its own, by calling the method of its parent, or where nothing was locked', async () => {
    class Own extends Base {
      @DistributedLock()
      override async buy() {}
    }
    class Calling extends Base {
      override async buy() {
        await super.buy();
      }
    }
    class Other extends Base {
      async sell() {}
    }
    expect(await adviceFor(Own, Calling, Other)).toMatchObject({ warnings: [], details: [] });
  });
});

describe('a decorator above the lock', () => {
  it.each([
    ['nestjs-cls', ClsTransactional],
    ['typeorm-transactional', Transactional],
  ])('that opens a transaction is warned about: %s', async (_name, transactional) => {
    class Shop {
      @transactional()
      @DistributedLock()
      async buy() {}
    }
    const { warnings } = await adviceFor(Shop);
    expect(warnings).toEqual([expect.stringMatching(/Shop\.buy: another decorator above it wraps .* before the commit/)]);
  });

  it.each([true, false])('that does something else is a detail: it keeps the metadata %p', async (keep) => {
    class Shop {
      @Traced(keep)
      @DistributedLock()
      async buy() {}
    }
    const { warnings, details } = await adviceFor(Shop);
    expect(warnings).toEqual([]);
    expect(details).toEqual([expect.stringMatching(/Shop\.buy: another decorator above it wraps/)]);
  });

  it('is not looked for below the lock, nor where it only leaves metadata', async () => {
    @Controller()
    class Shop {
      @DistributedLock()
      @ClsTransactional()
      async above() {}
      @Get()
      @DistributedLock({ value: 'get' })
      async below() {}
      @DistributedLock({ value: 'outer' })
      @DistributedLock({ value: 'inner' })
      async twice() {}
    }
    expect(await adviceFor(Shop)).toMatchObject({ warnings: [], details: [] });
  });

  it('that hides the lock does not keep it from what a factory made', async () => {
    class Shop {
      @Traced(false)
      @DistributedLock()
      async buy() {
        return currentLease()?.key;
      }
    }
    const { app } = await boot({ providers: [{ provide: 'shop', useFactory: () => new Shop() }] });
    expect(await app.get<Shop>('shop').buy()).toBe('Shop.buy-locks');
  });

  it('that hides the lock does not hide its mistakes: they end the boot', async () => {
    @Injectable()
    class Shop {
      @Traced(false)
      @DistributedLock({ store: 'nowhere' })
      async buy() {}
    }
    await expect(boot({ providers: [Shop] })).rejects.toThrow(/Shop\.buy: no store is registered under the name "nowhere"/);
  });
});

describe('an app that no signal closes', () => {
  beforeEach(() => jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance'] }));
  afterEach(() => jest.useRealTimers());

  it('is told so once, at debug level', async () => {
    const { details, warnings } = await adviceFor();
    jest.advanceTimersByTime(60_000);
    expect(details).toEqual([expect.stringContaining('app.enableShutdownHooks()')]);
    expect(warnings).toEqual([]);
  });

  it('is not, if it enables its hooks soon after it has begun to listen', async () => {
    const logger = new Log();
    const { app } = await boot({}, { logger });
    jest.advanceTimersByTime(500);
    app.enableShutdownHooks();
    jest.advanceTimersByTime(60_000);
    expect(logger.details).toEqual([]);
  });

  it('is not, if it has closed before', async () => {
    const logger = new Log();
    const { app } = await boot({}, { logger });
    await app.close();
    expect(jest.getTimerCount()).toBe(0);
    expect(logger.details).toEqual([]);
  });
});
