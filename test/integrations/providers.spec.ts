import { Inject, Injectable, type Provider, Scope } from '@nestjs/common';
import { boot } from '../nest/boot.js';
import { Counter, expectOneAtATime } from './counter.js';
import { way } from './place.js';

/** Boots it under the token `'counter'`, and counts with what is found there. */
async function proveCounter(provider: Provider, ...others: Provider[]): Promise<void> {
  const booted = await boot({ providers: [provider, ...others] });
  await expectOneAtATime(booted, booted.app.get<Counter>('counter'));
}

/** The same with an instance for each of two requests or owners. */
async function proveTwoCounters(useFactory: () => Counter | Promise<Counter>, scope: Scope): Promise<void> {
  const booted = await boot({ providers: [{ provide: 'counter', scope, useFactory }] });
  const counters = await Promise.all([booted.app.resolve<Counter>('counter'), booted.app.resolve<Counter>('counter')]);
  expect(counters[0]).not.toBe(counters[1]);
  await expectOneAtATime(booted, ...counters);
}

way('Providers', 'a class, useClass', () => {
  it('is locked where the class is its own token', async () => {
    const booted = await boot({ providers: [Counter] });
    await expectOneAtATime(booted, booted.get(Counter));
  });

  it('is locked under another token', () => proveCounter({ provide: 'counter', useClass: Counter }));
});

way('Providers', 'useFactory', () => {
  it('is locked', () => proveCounter({ provide: 'counter', useFactory: () => new Counter() }));

  it('is locked where the factory is async', () => proveCounter({ provide: 'counter', useFactory: async () => new Counter() }));

  it('is locked where the factory is injected into', () =>
    proveCounter(
      { provide: 'counter', inject: ['name'], useFactory: (name: string) => Object.assign(new Counter(), { name }) },
      { provide: 'name', useValue: 'apples' },
    ));
});

way('Providers', 'useFactory of request scope', () => {
  it('is locked across the instances', () => proveTwoCounters(() => new Counter(), Scope.REQUEST));

  it('is locked where the factory is async', () => proveTwoCounters(async () => new Counter(), Scope.REQUEST));
});

way('Providers', 'useFactory of transient scope', () => {
  it('is locked across the instances', () => proveTwoCounters(() => new Counter(), Scope.TRANSIENT));

  it('is locked where an instance was made for another provider', async () => {
    @Injectable()
    class Shop {
      constructor(@Inject('counter') readonly counter: Counter) {}
    }
    const booted = await boot({ providers: [Shop, { provide: 'counter', scope: Scope.TRANSIENT, useFactory: () => new Counter() }] });
    await expectOneAtATime(booted, booted.get(Shop).counter);
  });
});

way('Providers', 'useValue', () => {
  it('is locked', () => proveCounter({ provide: 'counter', useValue: new Counter() }));

  it('is locked where the value is frozen', () => proveCounter({ provide: 'counter', useValue: Object.freeze(new Counter()) }));
});

way('Providers', 'useExisting', () => {
  it('is locked as an alias of a class', () => proveCounter({ provide: 'counter', useExisting: Counter }, Counter));

  it('is locked as an alias of what a factory made', () =>
    proveCounter({ provide: 'counter', useExisting: 'made' }, { provide: 'made', useFactory: () => new Counter() }));
});
