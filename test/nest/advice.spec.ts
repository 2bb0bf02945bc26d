import { passTime } from '../support/virtual-time.js';
import { applyDecorators } from '@nestjs/common';
import { Cron, Interval, Timeout } from '@nestjs/schedule';
import type { DistributedLockOptions } from 'nestjs-distributed-lock';
import { CronLock, currentLease, DistributedLock, ReadLock, Semaphore, WriteLock } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { boot } from './boot.js';
import { classOf } from './class-of.js';
import { Log } from './log.js';

/** As a tracer would, which keeps nothing that it finds on the method. */
const Traced: MethodDecorator = (_target, _method, descriptor: PropertyDescriptor) => {
  const inner = descriptor.value as (...args: unknown[]) => unknown;
  descriptor.value = function (this: unknown, ...args: unknown[]): unknown {
    return inner.apply(this, args);
  };
};

const BY_SYMBOL = Symbol('by symbol');

class Base {
  @DistributedLock()
  async buy(): Promise<void> {}
  @DistributedLock()
  async [BY_SYMBOL](): Promise<void> {}
}

class Silent extends Base {
  override async buy() {}
}
class SilentBySymbol extends Base {
  override async [BY_SYMBOL]() {}
}
class Other extends Base {
  async sell() {}
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

const advice = (method: string, locked: string) =>
  expect.stringMatching(
    `^${method} overrides ${locked} without its @DistributedLock\\(\\): its calls run without the lock, unless .* \\[NDL_UNLOCKED_OVERRIDE\\]$`,
  );

it.each<[string, (new () => unknown)[], unknown[]]>([
  [
    'without a lock is a warning',
    [Silent, SilentBySymbol],
    [advice('Silent.buy', 'Base.buy'), advice('SilentBySymbol.Symbol\\(by symbol\\)', 'Base.Symbol\\(by symbol\\)')],
  ],
  ['is found below a class in between, and named once for all classes', [First, Second], [advice('Silent.buy', 'Base.buy')]],
  ['is compared with the lock that it replaces', [Last], [advice('Last.buy', 'Own.buy')]],
  ['is fine with a lock of its own, or where nothing was locked', [Own, Other], []],
])('an override of a locked method %s', async (_what, classes, expected) => {
  const logger = new Log();
  await boot({ providers: classes }, { logger });
  expect(logger).toMatchObject({ warnings: expected, details: [] });
});

it('a decorator that hides the lock below it does not keep it from what a factory made', async () => {
  class Shop {
    @Traced
    @DistributedLock()
    async buy() {
      return currentLease()?.key;
    }
  }
  const { app } = await boot({ providers: [{ provide: 'shop', useFactory: () => new Shop() }] });
  expect(await app.get<Shop>('shop').buy()).toBe('Shop.buy-locks');
});

it.each([
  ['a decorator that hides it', Traced],
  ['another one', DistributedLock({ value: 'outer' }) as MethodDecorator],
])('a lock below %s that cannot be made ends the boot', async (_what, upper) => {
  const inner = DistributedLock({ value: 'inner', store: 'nowhere' }) as MethodDecorator;
  const Shop = classOf('Shop', { buy: applyDecorators(inner, upper) });
  await expect(boot({ providers: [Shop] })).rejects.toThrow(/Shop\.buy: no store is registered under the name "nowhere"/);
});

describe('a lock on a schedule', () => {
  const EVERY_MINUTE = Cron('0 * * * * *');
  /** How many of three instances run a tick that they have at the same time, and what one of them is warned about. */
  async function tickOf(decorators: MethodDecorator[], defaults?: DistributedLockOptions) {
    const ran = new Set<object>();
    class Jobs {
      @applyDecorators(...decorators.toReversed())
      async tick() {
        ran.add(this);
        await passTime(100);
      }
    }
    const [store, logger] = [memoryStore(), new Log()];
    const apps = await Promise.all(
      [logger, false as const, false as const].map((each) => boot({ providers: [Jobs] }, { store, logger: each, defaults })),
    );
    await Promise.allSettled(apps.map(({ get }) => get(Jobs).tick()));
    return { ran: ran.size, warnings: logger.warnings.filter((line) => line.includes('NDL_CRON_WAITS')) };
  }
  const warning = (decorator: string, schedule: string) =>
    expect.stringMatching(`^${decorator}\\(\\) on Jobs\\.tick: every instance .* of ${schedule}, .*@CronLock\\(\\).*\\[NDL_CRON_WAITS\\]$`);
  const lock = (options: DistributedLockOptions = {}) => DistributedLock(options) as MethodDecorator;

  it.each<[string, MethodDecorator[], string, string]>([
    ['above @Cron', [lock(), EVERY_MINUTE], '@DistributedLock', '@Cron'],
    ['below @Cron', [EVERY_MINUTE, lock()], '@DistributedLock', '@Cron'],
    ['below @Interval', [Interval(60_000), lock()], '@DistributedLock', '@Interval'],
    ['of writers', [EVERY_MINUTE, WriteLock() as MethodDecorator], '@WriteLock', '@Cron'],
    ['that skips after it has waited', [EVERY_MINUTE, lock({ onTimeout: 'skip', waitTimeout: 5_000 })], '@DistributedLock', '@Cron'],
    ['with a minHold that is shorter than the wait', [EVERY_MINUTE, lock({ minHold: 300 })], '@DistributedLock', '@Cron'],
    ['above another one that waits', [EVERY_MINUTE, lock({ value: 'a' }), lock({ value: 'b' })], '@DistributedLock', '@Cron'],
  ])('is a warning where each instance waits, and so each runs a tick: one %s', async (_what, decorators, decorator, schedule) => {
    expect(await tickOf(decorators)).toEqual({ ran: 3, warnings: [warning(decorator, schedule)] });
  });

  it.each<[string, MethodDecorator[], DistributedLockOptions]>([
    ['@CronLock', [EVERY_MINUTE, CronLock({ minHold: 10_000 }) as MethodDecorator], {}],
    ['one try', [EVERY_MINUTE, lock({ retryCount: 1, minHold: 10_000 })], {}],
    ['no wait', [lock({ waitTimeout: 0 }), EVERY_MINUTE], {}],
    ['no wait, as a default of the module', [EVERY_MINUTE, lock()], { waitTimeout: 0 }],
    ['a minHold that is longer than the wait', [EVERY_MINUTE, lock({ minHold: 10_000 })], {}],
    ['@CronLock above a lock that waits', [EVERY_MINUTE, CronLock({ minHold: 10_000 }) as MethodDecorator, lock({ value: 'stock' })], {}],
  ])('is none where one instance runs a tick: %s', async (_what, decorators, defaults) => {
    expect(await tickOf(decorators, defaults)).toEqual({ ran: 1, warnings: [] });
  });

  it.each<[string, MethodDecorator[]]>([
    ['@Timeout, with which instances start one after the other', [Timeout(60_000), lock()]],
    ['permits, of which several are meant to run', [EVERY_MINUTE, Semaphore({ permits: 2 }) as MethodDecorator]],
    ['readers, which are meant to run together', [EVERY_MINUTE, ReadLock() as MethodDecorator]],
  ])('is none where each instance is meant to run: %s', async (_what, decorators) => {
    expect(await tickOf(decorators)).toEqual({ ran: 3, warnings: [] });
  });
});

describe('an option that can hardly be meant', () => {
  const DAY = 24 * 3_600_000;
  /** What a locked method with these options, and an app with these defaults, are warned about. */
  async function adviceOn(own: DistributedLockOptions, defaults?: DistributedLockOptions) {
    const Shop = classOf('Shop', { buy: DistributedLock(own), sell: DistributedLock({ ...own, value: 'other' }) });
    const logger = new Log();
    await boot({ providers: [Shop] }, { logger, defaults });
    return logger.warnings;
  }
  const key = (id: unknown) => String(id);
  const text = (found: string) => [
    expect.stringContaining(`@DistributedLock() on Shop.buy: "${found}" in "prefix" or "value" is plain text: one lock`),
  ];

  it.each<[string, DistributedLockOptions, string]>([
    ['of a template in quotes', { value: 'order-${id}' }, '${id}'],
    ['of a template in quotes, beside a key function', { value: 'order-${tenant.id}', key }, '${tenant.id}'],
    ['of a template in Spring', { value: 'order-#{id}' }, '#{id}'],
    ['of a route', { value: 'order-:id' }, ':id'],
    ['of a route, with the name of a parameter', { value: 'order/:orderId' }, ':orderId'],
  ])('is a warning, once: a value with the placeholder %s', async (_what, options, found) => {
    expect(await adviceOn(options)).toEqual(text(found));
  });

  it.each<[string, DistributedLockOptions]>([
    ['parts after colons', { value: 'order:paid:all' }],
    ['id after a colon, with a key', { value: 'order:id', key }],
    ['a hash tag', { value: 'order:{all}' }],
    ['a lease of an hour', { keyTimeout: 3_600_000 }],
    ['a fixed lease of a day', { keyTimeout: DAY, renew: false }],
  ])('is none: %s', async (_what, options) => {
    expect(await adviceOn({ value: 'stock', ...options })).toEqual([]);
  });

  it('is a warning: a keyTimeout of days, for which a crash keeps the key taken', async () => {
    const line = (where: string) =>
      expect.stringMatching(`^${where}: after a crash a keyTimeout of ${11 * DAY} ms keeps .* \\[NDL_LONG_LEASE\\]$`);
    const warnings = await adviceOn({ keyTimeout: 11 * DAY });
    expect(warnings).toEqual([line('@DistributedLock\\(\\) on Shop\\.buy'), line('@DistributedLock\\(\\) on Shop\\.sell')]);
  });

  it('is one warning where it is a default of the module, however many methods have it', async () => {
    const warnings = await adviceOn({}, { keyTimeout: 11 * DAY, prefix: '${APP}-' });
    const of = (code: string) => expect.stringMatching(`^DistributedLockModule: "defaults": .* \\[${code}\\]$`);
    expect(warnings).toEqual([of('NDL_KEY_TEXT'), of('NDL_LONG_LEASE')]);
    expect(await adviceOn({}, { keyTimeout: 11 * DAY, renew: false })).toEqual([]);
  });
});

describe('an app that no signal closes', () => {
  async function openApp() {
    const logger = new Log();
    return { ...(await boot({}, { logger })), logger };
  }

  it('is warned about once, when it takes a lock, and not as long as it takes none', async () => {
    const { logger, locks } = await openApp();
    await locks.using('early', () => undefined);
    await passTime(2_000);
    expect(logger.warnings).toEqual([]);
    for (const key of ['first', 'second']) await locks.using(key, () => undefined);
    expect(logger.warnings).toEqual([
      expect.stringMatching(/^Nothing listens to SIGTERM: .*app\.enableShutdownHooks\(\).*\[NDL_SHUTDOWN_HOOKS\]$/),
    ]);
  });

  it.each<[string, number]>([
    ['soon after it has begun to listen', 0],
    ['later, but before it takes a lock', 2_000],
  ])('is not, if it enables its hooks %s', async (_what, after) => {
    const { app, logger, locks } = await openApp();
    await passTime(after);
    app.enableShutdownHooks();
    await passTime(2_000);
    await locks.using('key', () => undefined);
    expect(logger.warnings).toEqual([]);
  });
});
