import '../support/virtual-time.js';
import { Global, Inject, Injectable, Module, Scope, type INestApplication, type OnModuleInit, type Provider } from '@nestjs/common';
import { DiscoveryService, LazyModuleLoader, ModuleRef } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { DistributedLock, DistributedLockModule } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { boot, isTaken, start, type Booted } from '../nest/boot.js';
import { eventually } from '../support/eventually.js';
import { Gate } from '../support/gate.js';
import { COUNT_KEY, Counter, expectOneAtATime, keysSeen, PATIENT } from './counter.js';
import { way } from './ways.js';

@Injectable({ scope: Scope.REQUEST })
class RequestCounter extends Counter {}
@Injectable({ scope: Scope.TRANSIENT })
class TransientCounter extends Counter {}
class Shop {
  constructor(@Inject('counter') readonly counter: Counter) {}
}
class Depot extends Shop {}

const make = () => new Counter();
const makeAsync = async () => new Counter();
const MADE = { provide: 'made', useFactory: make };

type Find = (app: INestApplication) => Counter[] | Promise<Counter[]>;
/** The one instance under the token `'counter'`. */
const one: Find = (app) => [app.get<Counter>('counter')];
/** One for each of two requests. */
const two: Find = (app) => Promise.all([app.resolve<Counter>('counter'), app.resolve<Counter>('counter')]);
/** One for each of two providers that it is injected into. */
const ofTwoOwners: Find = (app) => [app.get(Shop).counter, app.get(Depot).counter];

/** One lock keeps apart the calls on all instances that are found in an app with these providers. */
const locks = (...rows: [how: string, find: Find, ...providers: Provider[]][]) =>
  it.each(rows)('locks %s', async (_how, find, ...providers) => {
    const booted = await boot({ providers });
    const counters = await find(booted.app);
    expect(new Set(counters).size).toBe(counters.length);
    await expectOneAtATime(booted, ...counters);
  });

way('Providers', 'a class, useClass', () => {
  locks(
    ['a class that is its own token', (app) => [app.get(Counter)], Counter],
    ['a class under another token', one, { provide: 'counter', useClass: Counter }],
  );
});

way('Providers', 'useFactory', () => {
  locks(
    ['what a factory makes', one, { provide: 'counter', useFactory: make }],
    ['what an async factory makes', one, { provide: 'counter', useFactory: makeAsync }],
    ['a subclass that a factory makes', one, { provide: 'counter', useFactory: () => new (class extends Counter {})() }],
    [
      'what a factory makes of what is injected',
      one,
      { provide: 'counter', inject: ['name'], useFactory: (name: string) => Object.assign(new Counter(), { name }) },
      { provide: 'name', useValue: 'apples' },
    ],
  );

  it('leaves the factory of a single instance as it is', async () => {
    const { app } = await boot({ providers: [MADE] });
    const made = app.get(DiscoveryService, { strict: false }).getProviders();
    expect(made.find(({ name }) => name === 'made')?.metatype).toBe(make);
  });
});

way('Providers', 'useFactory of request scope', () => {
  locks(
    ['what a factory makes', two, { provide: 'counter', scope: Scope.REQUEST, useFactory: make }],
    ['what an async factory makes', two, { provide: 'counter', scope: Scope.REQUEST, useFactory: makeAsync }],
    ['by the scope of what is injected', two, RequestCounter, { provide: 'counter', inject: [RequestCounter], useFactory: make }],
  );
});

way('Providers', 'useFactory of transient scope', () => {
  locks(
    ['what a factory makes', two, { provide: 'counter', scope: Scope.TRANSIENT, useFactory: make }],
    ['what an async factory makes', two, { provide: 'counter', scope: Scope.TRANSIENT, useFactory: makeAsync }],
    ['for two owners', ofTwoOwners, Shop, Depot, { provide: 'counter', scope: Scope.TRANSIENT, useFactory: make }],
  );
});

way('Providers', 'useValue', () => {
  locks(
    ['a value', one, { provide: 'counter', useValue: new Counter() }],
    ['a frozen value', one, { provide: 'counter', useValue: Object.freeze(new Counter()) }],
  );

  it('locks a value that two modules share', async () => {
    const useValue = new Counter();
    const feature = (provide: string) => ({ module: class {}, providers: [{ provide, useValue }] });
    const booted = await boot({ imports: [feature('one'), feature('two')] });
    await expectOneAtATime(booted, ...['one', 'two'].map((name) => booted.app.get<Counter>(name, { strict: false })));
  });
});

way('Providers', 'useExisting', () => {
  locks(
    ['an alias of a class', one, { provide: 'counter', useExisting: Counter }, Counter],
    ['an alias of what a factory made', one, { provide: 'counter', useExisting: 'made' }, MADE],
  );
});

way('Providers', 'transient scope', () => {
  locks(['for two owners', ofTwoOwners, Shop, Depot, { provide: 'counter', useClass: TransientCounter }]);
});

way('Containers', 'ModuleRef.create', () => {
  locks(['two instances', (app) => Promise.all([app.get(ModuleRef).create(Counter), app.get(ModuleRef).create(Counter)])]);
});

way('Containers', 'ModuleRef.get and ModuleRef.resolve', () => {
  const resolved: Find = async (app) => {
    const ref = app.get(ModuleRef);
    const types = [RequestCounter, RequestCounter, TransientCounter];
    const scoped = await Promise.all(types.map((type) => ref.resolve<Counter>(type, undefined, { strict: false })));
    return [ref.get(Counter, { strict: false }), ...scoped];
  };
  locks(['in every scope', resolved, Counter, RequestCounter, TransientCounter]);
});

way('Containers', 'a module that is loaded lazily', () => {
  it.each<[string, Provider]>([
    ['a class', { provide: 'made', useClass: Counter }],
    ['what a factory made', MADE],
    ['a value', { provide: 'made', useValue: new Counter() }],
  ])('locks %s, and what the app had before', async (_what, provider) => {
    @Module({ providers: [provider] })
    class LazyModule {}
    const booted = await boot({ providers: [{ provide: 'early', useClass: Counter }] });
    const lazy = await booted.app.get(LazyModuleLoader).load(() => LazyModule);
    await expectOneAtATime(booted, lazy.get<Counter>('made'), booted.app.get<Counter>('early'));
  });

  it('locks what a factory makes of a provider of request scope, while another module is loaded', async () => {
    const gate = new Gate();
    const made = { provide: 'made', inject: ['slow', RequestCounter], useFactory: make };
    @Module({ providers: [RequestCounter, { provide: 'slow', useFactory: () => gate.pass() }, made] })
    class SlowModule {}
    @Module({})
    class QuickModule {}
    const booted = await boot({});
    const loader = booted.app.get(LazyModuleLoader);
    const loading = loader.load(() => SlowModule);
    await eventually(() => gate.arrived === 1);
    await loader.load(() => QuickModule);
    gate.open();
    const slow = await loading;
    const counters = await Promise.all([slow.resolve<Counter>('made'), slow.resolve<Counter>('made')]);
    expect(counters[0]).not.toBe(counters[1]);
    await expectOneAtATime(booted, ...counters);
  });
});

way('Containers', 'a module that is initialized before the module of locks', () => {
  @Injectable()
  class Early implements OnModuleInit {
    constructor(
      @Inject(Counter) readonly counter: Counter,
      @Inject('made') readonly made: Counter,
    ) {}
    async onModuleInit() {
      await this.counter.count();
      await this.made.count();
    }
  }
  const feature = { providers: [Counter, MADE, Early] };
  @Global()
  @Module(feature)
  class GlobalModule {}
  @Module(feature)
  class LocalModule {}
  const forRoot = () => DistributedLockModule.forRoot({ store: memoryStore(), logger: false });

  it.each([
    ['a global module that is imported before it', () => [GlobalModule, forRoot()]],
    ['a global module that is imported after it', () => [forRoot(), GlobalModule]],
    ['a module that is not global, imported before it', () => [LocalModule, forRoot()]],
  ])('locks on what Nest and a factory made, in %s', async (_which, imports) => {
    const app = await start(Test.createTestingModule({ imports: imports() }));
    await app.get<Counter>('made', { strict: false }).count();
    expect(keysSeen()).toEqual([COUNT_KEY, COUNT_KEY, COUNT_KEY]);
  });
});

/** Reports at the stores of both apps whether its key is taken there. */
@Injectable()
class Reporter {
  @DistributedLock({ value: 'report', ...PATIENT })
  async report(...apps: Booted[]) {
    return Promise.all(apps.map(({ store }) => isTaken(store, 'report-locks')));
  }
}
const bootTwo = async (metadata: Parameters<typeof boot>[0]) => [await boot(metadata), await boot(metadata)] as const;

way('Two apps in one process', 'each with a store of its own, sharing a class', () => {
  it('locks at the store of the app that made the instance, also when the other app is closed', async () => {
    const [first, second] = await bootTwo({ providers: [Reporter] });
    expect(await first.get(Reporter).report(first, second)).toEqual([true, false]);
    expect(await second.get(Reporter).report(first, second)).toEqual([false, true]);
    await second.app.close();
    expect(await first.get(Reporter).report(first)).toEqual([true]);
    await expect(second.get(Reporter).report()).rejects.toHaveProperty('name', 'LockAbortedError');
  });
});

way('Two apps in one process', 'one instance, created by the first, a useValue in the second', () => {
  it('locks at the store of the app that made it', async () => {
    const first = await boot({ providers: [Reporter] });
    const second = await boot({ providers: [{ provide: Reporter, useValue: first.get(Reporter) }] });
    expect(await second.get(Reporter).report(first, second)).toEqual([true, false]);
  });
});

way('Two apps in one process', 'one instance as a useValue in both', () => {
  const providers = () => [{ provide: Counter, useValue: new Counter() }];

  it('locks at the store of the app that booted last, whichever app is asked for it', async () => {
    const [first, second] = await bootTwo({ providers: providers() });
    expect(first.get(Counter)).toBe(second.get(Counter));
    await expectOneAtATime(second, first.get(Counter), second.get(Counter));
    expect(first.acquired).toEqual([]);
  });
});
