import {
  Inject,
  Injectable,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import { DistributedLock, LockConfigError, Locks } from 'nestjs-distributed-lock';
import { boot } from '../nest/boot.js';
import { COUNT_KEY, Counter, expectOneAtATime, keysSeen, PATIENT } from './counter.js';
import { key, way } from './place.js';

way('Calls', 'by the class itself', () => {
  @Injectable()
  class SelfCaller extends Counter {
    async countByThis() {
      return this.count();
    }
    @DistributedLock(PATIENT)
    async outer() {
      const before = key();
      return [before, await this.inner(), key()];
    }
    @DistributedLock(PATIENT)
    async inner() {
      return key();
    }
    @DistributedLock({ key: () => 'all', ...PATIENT })
    async countdown(from: number): Promise<string[]> {
      return from === 0 ? [key()] : [key(), ...(await this.countdown(from - 1))];
    }
  }

  it('is locked, by way of `this`, also on what a factory made', async () => {
    const booted = await boot({ providers: [SelfCaller, { provide: 'made', useFactory: () => new SelfCaller() }] });
    const made = booted.app.get<SelfCaller>('made');
    await expectOneAtATime(booted, { count: () => booted.get(SelfCaller).countByThis() }, { count: () => made.countByThis() });
  });

  it('is locked within another locked method, whose lease is the current one again afterwards, and may be the same', async () => {
    const { get, acquired } = await boot({ providers: [SelfCaller] });
    expect(await get(SelfCaller).outer()).toEqual(['SelfCaller.outer-locks', 'SelfCaller.inner-locks', 'SelfCaller.outer-locks']);
    expect(await get(SelfCaller).countdown(2)).toEqual(Array(3).fill('SelfCaller.countdown-all-locks'));
    expect(acquired).toEqual(['SelfCaller.outer-locks', 'SelfCaller.inner-locks', 'SelfCaller.countdown-all-locks']);
  });
});

way('Calls', 'in a constructor: a clear error', () => {
  const ran: string[] = [];
  @Injectable()
  class Eager {
    readonly first = this.load().catch((error: unknown) => error);

    @DistributedLock()
    async load() {
      ran.push(key());
    }
  }
  beforeEach(() => ran.splice(0));

  it.each([
    ['Nest makes', Eager],
    ['a factory makes', { provide: Eager, useFactory: () => new Eager() }],
  ])('rejects in that of an instance that %s, which is locked later', async (_who, provider) => {
    const { get } = await boot({ providers: [provider] });
    expect(await get(Eager).first).toBeInstanceOf(LockConfigError);
    expect(await get(Eager).first).toHaveProperty('message', expect.stringMatching(/Eager\.load.*constructor/));
    expect(ran).toEqual([]);
    await get(Eager).load();
    expect(ran).toEqual(['Eager.load-locks']);
  });

  it('is no matter in the constructor of another provider', async () => {
    @Injectable()
    class Owner {
      readonly counted: Promise<unknown>;
      constructor(@Inject(Counter) counter: Counter) {
        this.counted = counter.count();
      }
    }
    const { get } = await boot({ providers: [Owner, Counter] });
    expect(await get(Owner).counted).toBe(1);
    expect(keysSeen()).toEqual([COUNT_KEY]);
  });
});

way('Hooks', 'onModuleInit and onApplicationBootstrap', () => {
  it('are locked where they are the method, and where they call one, on what Nest and factories made', async () => {
    const ran: unknown[] = [];
    @Injectable()
    class Starter implements OnModuleInit, OnApplicationBootstrap {
      constructor(
        @Inject(Locks) locks: Locks,
        @Inject(Counter) private readonly counter: Counter,
        @Inject('made') private readonly made: Counter,
      ) {
        locks.on('acquired', (lease) => ran.push(lease.key));
      }
      @DistributedLock(PATIENT)
      async onModuleInit() {
        ran.push(await this.counter.count(), await this.made.count());
      }
      @DistributedLock(PATIENT)
      async onApplicationBootstrap() {
        ran.push(await this.counter.count(), await this.made.count());
      }
    }
    await boot({ providers: [Starter, Counter, { provide: 'made', useFactory: () => new Counter() }] });
    const own = ['Starter.onModuleInit-locks', 'Starter.onApplicationBootstrap-locks'];
    expect(ran).toEqual([own[0], COUNT_KEY, COUNT_KEY, 1, 2, own[1], COUNT_KEY, COUNT_KEY, 3, 4]);
  });
});

way('Hooks', 'onModuleDestroy and beforeApplicationShutdown', () => {
  it('are locked where they are the method, and where they call one', async () => {
    const ran: string[] = [];
    @Injectable()
    class Farewell implements OnModuleDestroy, BeforeApplicationShutdown {
      constructor(@Inject(Counter) private readonly counter: Counter) {}
      @DistributedLock(PATIENT)
      async onModuleDestroy() {
        ran.push(key());
        await this.counter.count();
      }
      @DistributedLock(PATIENT)
      async beforeApplicationShutdown() {
        ran.push(key());
      }
    }
    const { app, acquired, isTaken } = await boot({ providers: [Farewell, Counter] });
    await app.close();
    expect(ran).toEqual(['Farewell.onModuleDestroy-locks', 'Farewell.beforeApplicationShutdown-locks']);
    expect(acquired).toEqual([ran[0], COUNT_KEY, ran[1]]);
    expect(await Promise.all(acquired.map(isTaken))).toEqual([false, false, false]);
  });
});
