import '../support/virtual-time.js';
import type { BeforeApplicationShutdown, OnApplicationBootstrap, OnModuleDestroy, OnModuleInit } from '@nestjs/common';
import { Inject, Injectable } from '@nestjs/common';
import { DistributedLock, LockConfigError, Locks } from 'nestjs-distributed-lock';
import { boot } from '../nest/boot.js';
import { count, COUNT_KEY, Counter, expectOneAtATime, keysSeen, PATIENT } from './counter.js';
import { key, way } from './ways.js';

const MADE = { provide: 'made', useFactory: () => new Counter() };

way('Calls', 'by the class itself', () => {
  @Injectable()
  class SelfCaller extends Counter {
    async countByThis() {
      return this.count();
    }
  }

  it('locks a call by way of `this`, also on what a factory made', async () => {
    const booted = await boot({ providers: [SelfCaller, { provide: 'made', useFactory: () => new SelfCaller() }] });
    const counters = [booted.get(SelfCaller), booted.app.get<SelfCaller>('made')];
    await expectOneAtATime(booted, ...counters.map((counter) => ({ count: () => counter.countByThis() })));
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

  it('allows a call in the constructor of another provider', async () => {
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
  it('locks a hook, and what it calls, on what Nest and factories made', async () => {
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
    await boot({ providers: [Starter, Counter, MADE] });
    const own = ['Starter.onModuleInit-locks', 'Starter.onApplicationBootstrap-locks'];
    expect(ran).toEqual([own[0], COUNT_KEY, COUNT_KEY, 1, 2, own[1], COUNT_KEY, COUNT_KEY, 3, 4]);
  });
});

way('Hooks', 'onModuleDestroy and beforeApplicationShutdown', () => {
  it('locks a hook, and what it calls', async () => {
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

way('Inheritance', 'a base that declares the method: concrete, abstract, generic or a mixin', () => {
  abstract class Job<T> {
    @DistributedLock({ value: 'count', ...PATIENT })
    async count() {
      return this.work();
    }
    protected abstract work(): Promise<T>;
  }
  class CountingJob extends Job<number> {
    protected work() {
      return count();
    }
  }
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- what TypeScript wants of a mixin's constructor
  function Counting<B extends new (...args: any[]) => object>(Base: B) {
    class CountingBase extends Base {
      @DistributedLock({ value: 'count', ...PATIENT })
      async count() {
        return count();
      }
    }
    return CountingBase;
  }
  class Apples extends Counting(class {}) {}
  class Pears extends Counting(class {}) {}

  it.each<[string, ...(new () => { count(): Promise<unknown> })[]]>([
    ['concrete', Counter, class SubCounter extends Counter {}],
    ['abstract and generic', CountingJob],
    ['a mixin', Apples, Pears],
  ])('locks in all of its subclasses by one key: %s', async (_what, ...classes) => {
    const booted = await boot({ providers: classes });
    await expectOneAtATime(booted, ...classes.map((each) => booted.get(each)));
  });
});

way('Inheritance', 'a subclass overrides it without the decorator', () => {
  it('locks as far as super is called', async () => {
    const ran: string[] = [];
    class Calling extends Counter {
      override async count() {
        ran.push(key());
        return super.count();
      }
    }
    class Silent extends Counter {
      override async count() {
        ran.push(key());
        return 0;
      }
    }
    const booted = await boot({ providers: [Calling, Silent] });
    await booted.get(Silent).count();
    expect(booted.acquired).toEqual([]);
    await expectOneAtATime(booted, booted.get(Calling));
    expect(ran).toEqual(Array(7).fill('unlocked'));
  });
});

way('Inheritance', 'a subclass overrides it with a decorator of its own, and calls super', () => {
  it('takes both locks where the keys differ', async () => {
    const ran: string[] = [];
    class Base {
      @DistributedLock(PATIENT)
      async run() {
        ran.push(key());
        return 'base';
      }
    }
    class Sub extends Base {
      @DistributedLock(PATIENT)
      override async run() {
        ran.push(key());
        return `sub of ${await super.run()}`;
      }
    }
    const booted = await boot({ providers: [Sub] });
    expect(await booted.get(Sub).run()).toBe('sub of base');
    expect(ran).toEqual(['Sub.run-locks', 'Base.run-locks']);
    expect(booted.acquired).toEqual(ran);
  });
});

way('Inheritance', 'a method that is named by a symbol', () => {
  const RUN = Symbol('run');
  class Job {
    @DistributedLock(PATIENT)
    async [RUN]() {
      return key();
    }
  }
  class SubJob extends Job {}

  it('locks by the description of the symbol', async () => {
    const { get, acquired } = await boot({ providers: [Job, SubJob] });
    expect([await get(Job)[RUN](), await get(SubJob)[RUN]()]).toEqual(['Job.run-locks', 'Job.run-locks']);
    expect(acquired).toEqual(['Job.run-locks', 'Job.run-locks']);
  });
});
