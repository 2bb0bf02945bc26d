import { Controller, Get, Inject, Injectable, type Provider, Scope } from '@nestjs/common';
import { type ContextId, ContextIdFactory, type ContextIdStrategy, DiscoveryService, type HostComponentInfo, REQUEST } from '@nestjs/core';
import { currentLease, DistributedLock } from 'nestjs-distributed-lock';
import { boot, listen } from '../nest/boot.js';
import { count, Counter, expectOneAtATime, PATIENT } from './counter.js';
import { way } from './place.js';

@Injectable({ scope: Scope.REQUEST })
class RequestCounter extends Counter {}
@Injectable({ scope: Scope.TRANSIENT })
class TransientCounter extends Counter {}

const make = () => new Counter();
const makeAsync = async () => new Counter();

/** Boots it under the token `'counter'`, and counts with what is found there. */
async function proveCounter(provider: Provider, ...others: Provider[]): Promise<void> {
  const booted = await boot({ providers: [provider, ...others] });
  await expectOneAtATime(booted, booted.app.get<Counter>('counter'));
}

/** The same with an instance for each of two requests or owners. */
async function proveTwoCounters(...providers: Provider[]): Promise<void> {
  const booted = await boot({ providers });
  const counters = await Promise.all([booted.app.resolve<Counter>('counter'), booted.app.resolve<Counter>('counter')]);
  expect(counters[0]).not.toBe(counters[1]);
  await expectOneAtATime(booted, ...counters);
}

/** The same with two providers into which it is injected. */
async function proveTwoOwners(provider: Provider): Promise<void> {
  class Shop {
    constructor(@Inject('counter') readonly counter: Counter) {}
  }
  class Depot extends Shop {}
  const booted = await boot({ providers: [provider, Shop, Depot] });
  const counters = [booted.get(Shop).counter, booted.get(Depot).counter];
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
  it.each<[string, () => unknown]>([
    ['', make],
    [' where the factory is async', makeAsync],
    [' where it makes a subclass', () => new (class extends Counter {})()],
  ])('is locked%s', (_how, useFactory) => proveCounter({ provide: 'counter', useFactory }));

  it('is locked where the factory is injected into', () =>
    proveCounter(
      { provide: 'counter', inject: ['name'], useFactory: (name: string) => Object.assign(new Counter(), { name }) },
      { provide: 'name', useValue: 'apples' },
    ));

  it('is left alone where its instance is made once', async () => {
    const { app } = await boot({ providers: [{ provide: 'made', useFactory: make }] });
    const made = app.get(DiscoveryService, { strict: false }).getProviders();
    expect(made.find(({ name }) => name === 'made')?.metatype).toBe(make);
  });
});

way('Providers', 'useFactory of request scope', () => {
  it.each([
    ['', make],
    [' where the factory is async', makeAsync],
  ])('is locked across the instances%s', (_how, useFactory) => proveTwoCounters({ provide: 'counter', scope: Scope.REQUEST, useFactory }));

  it('is locked where it is so by what is injected into the factory', () =>
    proveTwoCounters(RequestCounter, { provide: 'counter', inject: [RequestCounter], useFactory: make }));
});

way('Providers', 'useFactory of transient scope', () => {
  it.each([
    ['', make],
    [' where the factory is async', makeAsync],
  ])('is locked across the instances%s', (_how, useFactory) =>
    proveTwoCounters({ provide: 'counter', scope: Scope.TRANSIENT, useFactory }),
  );

  it('is locked where the instances were made for other providers', () =>
    proveTwoOwners({ provide: 'counter', scope: Scope.TRANSIENT, useFactory: make }));
});

way('Providers', 'useValue', () => {
  it('is locked', () => proveCounter({ provide: 'counter', useValue: new Counter() }));

  it('is locked where the value is frozen', () => proveCounter({ provide: 'counter', useValue: Object.freeze(new Counter()) }));

  it('is locked where two modules of the app share it', async () => {
    const useValue = new Counter();
    const feature = (provide: string) => ({ module: class {}, providers: [{ provide, useValue }] });
    const booted = await boot({ imports: [feature('one'), feature('two')] });
    await expectOneAtATime(booted, ...['one', 'two'].map((name) => booted.app.get<Counter>(name, { strict: false })));
  });
});

way('Providers', 'useExisting', () => {
  it('is locked as an alias of a class', () => proveCounter({ provide: 'counter', useExisting: Counter }, Counter));

  it('is locked as an alias of what a factory made', () =>
    proveCounter({ provide: 'counter', useExisting: 'made' }, { provide: 'made', useFactory: make }));
});

way('Providers', 'request scope', () => {
  it('is locked across the instances of several requests', () => proveTwoCounters({ provide: 'counter', useClass: RequestCounter }));

  it('is locked in one that is injected into a controller', async () => {
    @Controller()
    class CountController {
      constructor(@Inject(RequestCounter) private readonly counter: RequestCounter) {}
      @Get()
      async count() {
        return { count: await this.counter.count() };
      }
    }
    const booted = await boot({ controllers: [CountController], providers: [RequestCounter] });
    const url = await listen(booted.app);
    const ask = async () => expect((await fetch(url)).status).toBe(200);
    await expectOneAtATime(booted, { count: ask });
  });

  it('is locked in a controller itself, which has its request', async () => {
    const seen: unknown[] = [];
    @Controller({ scope: Scope.REQUEST })
    class RequestController {
      constructor(@Inject(REQUEST) private readonly request: { url: string }) {}
      @Get(':id')
      @DistributedLock({ value: 'count', ...PATIENT })
      async count() {
        seen.push(this.request.url);
        return { count: await count() };
      }
    }
    const booted = await boot({ controllers: [RequestController] });
    const url = await listen(booted.app);
    const ask = async (id: number) => expect((await fetch(`${url}/${id}`)).status).toBe(200);
    await expectOneAtATime(booted, { count: () => ask(1) }, { count: () => ask(2) });
    expect(new Set(seen)).toEqual(new Set(['/1', '/2']));
  });
});

way('Providers', 'transient scope', () => {
  it('is locked across the instances of several owners', () => proveTwoOwners({ provide: 'counter', useClass: TransientCounter }));
});

way('Providers', 'durable, one instance for each tenant', () => {
  /** As in the documentation of Nest: what is made for a tenant is kept for its later requests. */
  class ByTenant implements ContextIdStrategy<{ headers: Record<string, string> }> {
    private readonly tenants = new Map<string, ContextId>();

    attach(contextId: ContextId, { headers }: { headers: Record<string, string> }) {
      const tenant = headers['x-tenant'] ?? '';
      const known = this.tenants.get(tenant) ?? ContextIdFactory.create();
      this.tenants.set(tenant, known);
      return {
        resolve: ({ isTreeDurable }: HostComponentInfo) => (isTreeDurable ? known : contextId),
        payload: { tenant },
      };
    }
  }
  const made: string[] = [];
  const runs: unknown[] = [];

  @Injectable({ scope: Scope.REQUEST, durable: true })
  class TenantCounter extends Counter {
    constructor(@Inject(REQUEST) readonly context: { tenant: string }) {
      super();
      made.push(context.tenant);
    }
    @DistributedLock<TenantCounter['bill']>({ value: 'bill', key: (year) => year })
    async bill(year: number) {
      runs.push([this.context.tenant, year, currentLease()?.key]);
    }
  }
  @Controller()
  class TenantController {
    constructor(@Inject(TenantCounter) private readonly counter: TenantCounter) {}
    @Get('count')
    async count() {
      return { count: await this.counter.count() };
    }
    @Get('bill')
    async bill() {
      return { bill: await this.counter.bill(2030) };
    }
  }

  async function bootTenants() {
    const booted = await boot({ controllers: [TenantController], providers: [TenantCounter] });
    const url = await listen(booted.app);
    const ask = async (path: string, tenant: string) =>
      expect((await fetch(`${url}/${path}`, { headers: { 'x-tenant': tenant } })).status).toBe(200);
    return { booted, ask };
  }
  beforeEach(() => {
    [made, runs].forEach((list) => list.splice(0));
    ContextIdFactory.apply(new ByTenant());
  });
  afterEach(() => ContextIdFactory.apply(undefined as unknown as ContextIdStrategy));

  it('is locked across the tenants, each of which keeps its instance', async () => {
    const { booted, ask } = await bootTenants();
    await expectOneAtATime(booted, { count: () => ask('count', 'a') }, { count: () => ask('count', 'b') });
    const ofFirstRequests = made.length;
    await ask('count', 'a');
    expect(made).toHaveLength(ofFirstRequests);
    expect(new Set(made)).toEqual(new Set(['a', 'b']));
  });

  it('shares its key between the tenants unless the tenant is a part of it', async () => {
    const { booted, ask } = await bootTenants();
    await ask('bill', 'a');
    await ask('bill', 'b');
    expect(runs).toEqual([
      ['a', 2030, 'bill-2030-locks'],
      ['b', 2030, 'bill-2030-locks'],
    ]);
    expect(booted.acquired).toEqual(['bill-2030-locks', 'bill-2030-locks']);
  });
});
