import { passTime } from '../support/virtual-time.js';
import { Controller, Get, Injectable, type INestApplication } from '@nestjs/common';
import { currentLease, DistributedLock } from 'nestjs-distributed-lock';
import { Transactional as ClsTransactional } from '@nestjs-cls/transactional';
import { Transactional } from 'typeorm-transactional';
import { boot } from './boot.js';
import { Log } from './log.js';

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

class Silent extends Base {
  override async buy() {}
}
class Calling extends Base {
  override async buy() {
    await super.buy();
  }
}
class First extends Silent {}
class Second extends Silent {}
class Own extends Base {
  @DistributedLock()
  override async buy() {}
}
class Last extends Own {
  override async buy() {}
}
class Other extends Base {
  async sell() {}
}

describe('an override of a locked method', () => {
  const advice = (method: string, locked: string) =>
    expect.stringContaining(
      `${method} overrides ${locked} without its @DistributedLock(): only its calls of the parent's method are locked`,
    );

  it.each<[string, (new () => unknown)[], unknown[]]>([
    [
      'without a lock is a detail: nobody can know whether it calls its parent',
      [Silent, Calling],
      [advice('Silent.buy', 'Base.buy'), advice('Calling.buy', 'Base.buy')],
    ],
    ['is found below a class in between, and named once for all classes', [First, Second], [advice('Silent.buy', 'Base.buy')]],
    ['is compared with the lock that it replaces', [Last], [advice('Last.buy', 'Own.buy')]],
    ['is fine with a lock of its own, or where nothing was locked', [Own, Other], []],
  ])('%s', async (_what, classes, expected) => {
    expect(await adviceFor(...classes)).toMatchObject({ warnings: [], details: expected });
  });
});

describe('a decorator above the lock', () => {
  it.each<[string, MethodDecorator]>([
    ['@Transactional() of nestjs-cls', ClsTransactional()],
    ['@Transactional() of typeorm-transactional', Transactional()],
    ['one that keeps the metadata', Traced(true)],
    ['one that keeps no metadata', Traced(false)],
  ])('is a detail that says what it means for a transaction: %s', async (_name, decorator) => {
    class Shop {
      @decorator
      @DistributedLock()
      async buy() {}
    }
    const { warnings, details } = await adviceFor(Shop);
    expect(warnings).toEqual([]);
    expect(details).toEqual([expect.stringMatching(/Shop\.buy: another decorator above it wraps .* committed after the release/)]);
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
  it('is warned about once, at debug level', async () => {
    const { details, warnings } = await adviceFor();
    await passTime(5_000);
    expect(details).toEqual([expect.stringContaining('app.enableShutdownHooks()')]);
    expect(warnings).toEqual([]);
  });

  it.each<[string, (app: INestApplication) => unknown]>([
    ['enables its hooks soon after it has begun to listen', (app) => app.enableShutdownHooks()],
    ['has closed before', (app) => app.close()],
  ])('is not, if it %s', async (_what, act) => {
    const logger = new Log();
    const { app } = await boot({}, { logger });
    await act(app);
    await passTime(5_000);
    expect(logger.details).toEqual([]);
  });
});
