import { Global, Inject, Injectable, Module, type OnModuleInit, Scope } from '@nestjs/common';
import { LazyModuleLoader, ModuleRef } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { boot, start } from '../nest/boot.js';
import { Gate } from '../support/gate.js';
import { eventually } from '../support/eventually.js';
import { COUNT_KEY, Counter, expectOneAtATime, keysSeen } from './counter.js';
import { way } from './place.js';

@Injectable({ scope: Scope.REQUEST })
class RequestCounter extends Counter {}
@Injectable({ scope: Scope.TRANSIENT })
class TransientCounter extends Counter {}

way('Containers', 'a module that is loaded lazily', () => {
  it('is locked, beside what the app had before', async () => {
    @Module({ providers: [Counter] })
    class LazyModule {}
    const booted = await boot({ providers: [{ provide: 'early', useClass: Counter }] });
    const lazy = await booted.app.get(LazyModuleLoader).load(() => LazyModule);
    await expectOneAtATime(booted, lazy.get(Counter), booted.app.get<Counter>('early'));
  });

  it.each([
    ['a factory made', { provide: 'made', useFactory: () => new Counter() }],
    ['was given as a value', { provide: 'made', useValue: new Counter() }],
  ])('is locked on what %s', async (_how, provider) => {
    @Module({ providers: [provider] })
    class LazyModule {}
    const booted = await boot({});
    const lazy = await booted.app.get(LazyModuleLoader).load(() => LazyModule);
    await expectOneAtATime(booted, lazy.get<Counter>('made'));
  });

  it('is locked on what a factory makes of a provider of request scope, while another module is loaded', async () => {
    const gate = new Gate();
    @Module({
      providers: [
        RequestCounter,
        { provide: 'slow', useFactory: () => gate.pass() },
        { provide: 'made', inject: ['slow', RequestCounter], useFactory: () => new Counter() },
      ],
    })
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

way('Containers', 'ModuleRef.create', () => {
  it('is locked across the instances', async () => {
    const booted = await boot({});
    const ref = booted.app.get(ModuleRef);
    const counters = await Promise.all([ref.create(Counter), ref.create(Counter)]);
    expect(counters[0]).not.toBe(counters[1]);
    await expectOneAtATime(booted, ...counters);
  });
});

way('Containers', 'ModuleRef.get and ModuleRef.resolve', () => {
  it('are locked in every scope', async () => {
    const booted = await boot({ providers: [Counter, RequestCounter, TransientCounter] });
    const ref = booted.app.get(ModuleRef);
    const scoped = await Promise.all(
      [RequestCounter, RequestCounter, TransientCounter].map((type) => ref.resolve<Counter>(type, undefined, { strict: false })),
    );
    expect(new Set(scoped).size).toBe(3);
    await expectOneAtATime(booted, ref.get(Counter, { strict: false }), ...scoped);
  });
});

way('Containers', 'a module that is initialized before the module of locks', () => {
  const results: unknown[] = [];
  const attempt = (counter: Counter) =>
    counter.count().then(
      () => 'counted',
      (error: unknown) => error,
    );
  beforeEach(() => results.splice(0));

  @Injectable()
  class Early implements OnModuleInit {
    constructor(
      @Inject(Counter) readonly counter: Counter,
      @Inject('made') readonly made: Counter,
    ) {}
    async onModuleInit() {
      results.push(await attempt(this.counter), await attempt(this.made));
    }
  }
  @Global()
  @Module({ providers: [Counter, { provide: 'made', useFactory: () => new Counter() }, Early] })
  class GlobalModule {}
  @Module({ providers: [Counter, { provide: 'made', useFactory: () => new Counter() }, Early] })
  class LocalModule {}
  const forRoot = () => DistributedLockModule.forRoot({ store: memoryStore(), logger: false });

  it('is locked on what Nest made, on what a factory made too, then and afterwards', async () => {
    const app = await start(Test.createTestingModule({ imports: [GlobalModule, forRoot()] }));
    expect(results).toEqual(['counted', 'counted']);
    expect(await attempt(app.get<Counter>('made', { strict: false }))).toBe('counted');
  });

  it.each([
    ['a global module that is imported after it', () => [forRoot(), GlobalModule]],
    ['a module that is not global, imported before it', () => [LocalModule, forRoot()]],
  ])('does not concern %s', async (_which, imports) => {
    await start(Test.createTestingModule({ imports: imports() }));
    expect(results).toEqual(['counted', 'counted']);
    expect(keysSeen()).toEqual([COUNT_KEY, COUNT_KEY]);
  });
});
